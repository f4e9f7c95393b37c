package lakejoin;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import scala.Function1;
import scala.collection.Iterator;
import scala.collection.immutable.AbstractSeq;
import scala.collection.immutable.ArraySeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The rows of a local relation. Most of the analyser's and the optimiser's rules look for expressions in all that an operator is made of, and so
 * in each row of it, where there are none: that took a tenth of a refresh that had a thousand rows. This sequence does not show them its rows.
 */
public final class DriverRows extends AbstractSeq {
  private static final String SEARCHES = "org.apache.spark.sql.catalyst.plans.QueryPlan$";

  private final InternalRow[] rows;

  DriverRows(InternalRow[] rows) {
    this.rows = rows;
  }

  static Seq of(List rows) {
    return new DriverRows((InternalRow[]) rows.toArray(new InternalRow[rows.size()]));
  }

  /** Whether a function is one with which Catalyst looks for the expressions of an operator, or changes them. */
  private static boolean searches(Function1 function) {
    return function.getClass().getName().startsWith(SEARCHES);
  }

  public int length() {
    return rows.length;
  }

  public Object apply(int at) {
    return rows[at];
  }

  public Object apply(Object at) {
    return rows[((Integer) at).intValue()];
  }

  public Iterator iterator() {
    return CollectionConverters.asScala(Arrays.asList((Object[]) rows).iterator());
  }

  /** The rows changed one by one; the same rows where only expressions would be changed. */
  public Object map(Function1 change) {
    if (searches(change)) return this;
    Object[] made = new Object[rows.length];
    boolean same = true;
    for (int i = 0; i < made.length; i++) {
      made[i] = change.apply(rows[i]);
      same = same && made[i] instanceof InternalRow;
    }
    return same ? of(Arrays.asList(made)) : (Object) ArraySeq.unsafeWrapArray(made);
  }

  /** None where expressions are looked for. */
  public Object flatMap(Function1 found) {
    return searches(found) ? Sequences.seq(new ArrayList()) : super.flatMap(found);
  }

  public Object filter(Function1 wanted) {
    List found = new ArrayList();
    for (int i = 0; i < rows.length; i++) if (((Boolean) wanted.apply(rows[i])).booleanValue()) found.add(rows[i]);
    return of(found);
  }

  public Object take(int most) {
    return most >= rows.length ? this : of(Arrays.asList((Object[]) rows).subList(0, Math.max(most, 0)));
  }
}
