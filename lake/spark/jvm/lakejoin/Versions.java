package lakejoin;

import java.io.IOException;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.OptimisticTransaction;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.VersionChecksum;
import org.apache.spark.sql.delta.util.JsonUtils$;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.execution.metric.SQLMetrics$;
import scala.Tuple2;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;

/** What Delta knows of a table and its versions, in one call each (lake/delta/log.py, pinned.py, snapshot_cache.py, transaction.py). */
public final class Versions {
  /** Whether a table exists now. Delta's cache still has a table that was deleted after this process read it. */
  public boolean exists(DeltaLog log) throws IOException {
    Path place = log.logPath();
    return log.tableExists() && place.getFileSystem(log.newDeltaHadoopConf()).exists(place);
  }

  /** The id of a version's table, and its number: "id number". */
  public String identity(Snapshot snapshot) {
    return snapshot.metadata().id() + " " + snapshot.version();
  }

  /** The table's columns at a version, as JSON. */
  public String schema(Snapshot snapshot) {
    return snapshot.schema().json();
  }

  /** The table's properties at a version, as JSON. */
  public String properties(Snapshot snapshot) {
    return JsonUtils$.MODULE$.toJson(snapshot.metadata().configuration(), null);
  }

  /** The checksum that a version's writer stored beside the commit; null if there is none. */
  public VersionChecksum checksum(Snapshot snapshot) {
    return snapshot.checksumOpt().isDefined() ? (VersionChecksum) snapshot.checksumOpt().get() : null;
  }

  /** Whether a version's checksum lists its files. */
  public boolean notesFiles(Snapshot snapshot) {
    VersionChecksum found = checksum(snapshot);
    return found != null && found.allFiles().isDefined();
  }

  /** The size of a version's files in bytes, and their number, "bytes number", by its checksum; null where it has none. */
  public String sizes(Snapshot snapshot) {
    VersionChecksum found = checksum(snapshot);
    return found == null ? null : found.tableSizeBytes() + " " + found.numFiles();
  }

  /** The folder of a table's log. */
  public String place(DeltaLog log) {
    return log.logPath().toString();
  }

  /** How many files a version has, by its checksum; 0 where it has none. */
  public long files(Snapshot snapshot) {
    VersionChecksum found = checksum(snapshot);
    return found == null ? 0L : found.numFiles();
  }

  /** Whether later commits are found by their file names (no commit coordinator has them), and the list of files is known. */
  public boolean byName(Snapshot snapshot) {
    return notesFiles(snapshot) && !snapshot.tableCommitCoordinatorClientOpt().isDefined() && !snapshot.isCatalogOwned();
  }

  /** Give a transaction its metrics for the history, "name=number name=number". */
  public void count(SparkSession session, OptimisticTransaction transaction, String numbers) {
    Map metrics = Map$.MODULE$.empty();
    for (String each : numbers.isEmpty() ? new String[0] : numbers.split(" ")) {
      String[] pair = each.split("=");
      SQLMetric metric = SQLMetrics$.MODULE$.createMetric(session.sparkContext(), pair[0]);
      metric.set(Long.parseLong(pair[1]));
      metrics = (Map) metrics.$plus(new Tuple2(pair[0], metric));
    }
    transaction.registerSQLMetrics(session, metrics);
  }
}
