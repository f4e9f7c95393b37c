package lakejoin;

import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.TreeMap;
import net.razorvine.pickle.Pickler;
import net.razorvine.pickle.Unpickler;
import org.apache.spark.sql.RuntimeConfig;
import org.apache.spark.sql.classic.SparkSession;
import scala.Option;
import scala.Tuple2;

/** The session whose settings Spark and Delta use in this thread (lake/spark/jvm/gateway.py), and its settings (lake/spark/session.py). */
public final class ActiveSession {
  /** Make a session the active one, or none (null); returns the one before, null if there was none. */
  public static SparkSession swap(SparkSession session) {
    Option before = SparkSession.getActiveSession();
    if (session == null) SparkSession.clearActiveSession();
    else SparkSession.setActiveSession(session);
    return before.isDefined() ? (SparkSession) before.get() : null;
  }

  /** Give a session some settings (a pickled dict of texts; None: not set). Returns what they were before, likewise. */
  public static byte[] set(SparkSession session, byte[] wanted) throws Exception {
    RuntimeConfig conf = session.conf();
    Map before = new HashMap();
    Iterator each = ((Map) new Unpickler().loads(wanted)).entrySet().iterator();
    while (each.hasNext()) {
      Map.Entry setting = (Map.Entry) each.next();
      String name = (String) setting.getKey();
      before.put(name, conf.get(name, null));
      if (setting.getValue() == null) conf.unset(name);
      else conf.set(name, (String) setting.getValue());
    }
    return new Pickler(false, false).dumps(before);
  }

  /** The settings of a session whose names begin with one of some texts, and with none of others, in the order of their names. */
  static Map settings(SparkSession session, String[] beginnings, String[] without) {
    Map found = new TreeMap();
    scala.collection.Iterator all = session.sessionState().conf().getAllConfs().iterator();
    while (all.hasNext()) {
      Tuple2 setting = (Tuple2) all.next();
      String name = (String) setting._1();
      if (begins(name, beginnings) && !begins(name, without)) found.put(name, setting._2());
    }
    return found;
  }

  private static boolean begins(String name, String[] beginnings) {
    for (int i = 0; i < beginnings.length; i++) if (name.startsWith(beginnings[i])) return true;
    return false;
  }
}
