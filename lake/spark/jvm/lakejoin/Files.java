package lakejoin;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.OptimisticTransaction;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.files.TahoeBatchFileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.Option;
import scala.collection.immutable.Seq;

/** Frames over some files of a Delta table's version (lake/delta/log.py), and one file in the place of some (lake/delta/transaction.py). */
public final class Files {
  /** The rows of some files (AddFile actions, with their deletion vectors), in a session, by the schema of a snapshot. */
  public Dataset rows(SparkSession session, DeltaLog log, Snapshot snapshot, Seq files) {
    // a table with CHAR columns has a projection on top, that pads them, and gets it again
    LogicalPlan plan = log.createDataFrame(snapshot, files, false, Option.empty()).queryExecution().analyzed();
    HadoopFsRelation delta = (HadoopFsRelation) ((LogicalRelation) plan.collectLeaves().head()).relation();
    Chosen chosen = new Chosen(session, log, snapshot, files);
    return session.baseRelationToDataFrame(new HadoopFsRelation(chosen, delta.partitionSchema(), delta.dataSchema(), delta.bucketSpec(),
        delta.fileFormat(), delta.options(), session));
  }

  /** Write rows and add to `actions` that their files come in the place of those that hold the rows now (AddFile actions). */
  public void rewrite(OptimisticTransaction transaction, Dataset rows, Seq files, List actions) {
    long now = System.currentTimeMillis();
    for (Object file : Sequences.list(files)) actions.add(((AddFile) file).removeWithTimestamp(now, false));
    for (Object file : Sequences.list(transaction.writeFiles(rows, Option.empty(), true, Sequences.seq(new ArrayList()))))
      actions.add(withoutChange((AddFile) file));
  }

  private static AddFile withoutChange(AddFile file) {
    return file.copy(file.path(), file.partitionValues(), file.size(), file.modificationTime(), false, file.stats(), file.tags(),
        file.deletionVector(), file.baseRowId(), file.defaultRowCommitVersion(), file.clusteringProvider(), file.backReference(),
        file.amtPassthrough());
  }

  /** Delta's index of given files, but that it does not make a Dataset of them, and filter it, to give them back. */
  public static final class Chosen extends TahoeBatchFileIndex {
    private final Seq files;

    Chosen(SparkSession session, DeltaLog log, Snapshot snapshot, Seq files) {
      super(session, "batch", files, log, log.dataPath(), snapshot, false);
      this.files = files;
    }

    int number() {
      return files.size();
    }

    public Seq matchingFiles(Seq partitionFilters, Seq dataFilters) {
      return partitionFilters.isEmpty() ? files : super.matchingFiles(partitionFilters, dataFilters);
    }
  }
}
