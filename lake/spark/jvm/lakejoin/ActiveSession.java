package lakejoin;

import org.apache.spark.sql.classic.SparkSession;
import scala.Option;

/** The session whose settings Spark and Delta use in this thread (lake/spark/jvm/gateway.py). */
public final class ActiveSession {
  /** Make a session the active one, or none (null); returns the one before, null if there was none. */
  public static SparkSession swap(SparkSession session) {
    Option before = SparkSession.getActiveSession();
    if (session == null) SparkSession.clearActiveSession();
    else SparkSession.setActiveSession(session);
    return before.isDefined() ? (SparkSession) before.get() : null;
  }
}
