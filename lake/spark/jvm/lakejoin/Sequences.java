package lakejoin;

import java.util.List;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Scala's sequences as Java's lists, and back. */
final class Sequences {
  private Sequences() {}

  static List list(Seq items) {
    return CollectionConverters.asJava(items);
  }

  static Seq seq(List items) {
    return CollectionConverters.asScala(items).toSeq();
  }
}
