package lakejoin;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URISyntaxException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.OptimisticTransaction;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.SnapshotDescriptor;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.actions.Action$;
import org.apache.spark.sql.delta.actions.DeletionVectorDescriptor;
import org.apache.spark.sql.delta.files.TahoeBatchFileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.Option;
import scala.collection.immutable.Seq;

/**
 * Frames over some files of a version of a Delta table (lake/delta/pinned.py), the rewriting of files (lake/delta/transaction.py), and names of
 * files (lake/delta/sidecar.py).
 */
public final class Files {
  /** The rows of some files (AddFile actions, with their deletion vectors), in a session, by the schema of a snapshot. */
  public Dataset rows(SparkSession session, DeltaLog log, Snapshot snapshot, List some) {
    Seq files = Sequences.seq(some);
    // the projection that pads CHAR columns is dropped here: baseRelationToDataFrame adds it again
    LogicalPlan plan = log.createDataFrame(snapshot, files, false, Option.empty()).queryExecution().analyzed();
    HadoopFsRelation delta = (HadoopFsRelation) ((LogicalRelation) plan.collectLeaves().head()).relation();
    Chosen chosen = new Chosen(session, log, snapshot, files);
    return session.baseRelationToDataFrame(new HadoopFsRelation(chosen, delta.partitionSchema(), delta.dataSchema(), delta.bucketSpec(),
        delta.fileFormat(), delta.options(), session));
  }

  /** Some of a list's files, by their places in it: "0,3,7". One call for all, so that no file crosses to Python by itself. */
  public List pick(List files, String places) {
    List found = new ArrayList();
    if (!places.isEmpty()) for (String place : places.split(",")) found.add(files.get(Integer.parseInt(place)));
    return found;
  }

  /** The next files of an iterator, at most some; none after the last. */
  public List next(Iterator files, int most) {
    List found = new ArrayList();
    while (found.size() < most && files.hasNext()) found.add(files.next());
    return found;
  }

  /** Actions of the log from their JSON, one a line. */
  public List actions(String lines) {
    List found = new ArrayList();
    if (!lines.isEmpty()) for (String line : lines.split("\n")) found.add(Action$.MODULE$.fromJson(line));
    return found;
  }

  /** The names, one a line, of the files in a folder that start with a prefix; none if there is no folder. The storage is listed page by page. */
  public String names(FileSystem files, Path folder, String prefix) throws IOException {
    StringBuilder found = new StringBuilder();
    try {
      RemoteIterator listed = files.listStatusIterator(folder);
      while (listed.hasNext()) {
        String name = ((FileStatus) listed.next()).getPath().getName();
        if (name.startsWith(prefix)) found.append(found.length() == 0 ? "" : "\n").append(name);
      }
    } catch (FileNotFoundException none) {
      return "";
    }
    return found.toString();
  }

  /** The names of the files that a frame reads. */
  public Names read(Dataset frame) throws URISyntaxException {
    return new Names(frame.inputFiles());
  }

  /** The AddFile actions of a snapshot for the file names in the only column of a frame. All others are read one by one, and not stored. */
  public List named(Snapshot snapshot, Dataset frame) {
    Set names = new HashSet();
    Iterator rows = frame.toLocalIterator();
    while (rows.hasNext()) names.add(((Row) rows.next()).getString(0));
    List found = new ArrayList();
    Iterator files = snapshot.allFiles().toLocalIterator();
    while (files.hasNext()) {
      AddFile file = (AddFile) files.next();
      if (names.contains(name(file.path()))) found.add(file);
    }
    return found;
  }

  /** Remove the files of a folder that were last written before a time in milliseconds; returns how many. */
  public long deleteOlder(FileSystem files, Path folder, long before) throws IOException {
    long removed = 0;
    try {
      RemoteIterator listed = files.listStatusIterator(folder);
      while (listed.hasNext()) {
        FileStatus file = (FileStatus) listed.next();
        if (file.isDirectory() || file.getModificationTime() >= before) continue;
        files.delete(file.getPath(), false);
        removed++;
      }
    } catch (FileNotFoundException none) {
      return removed;
    }
    return removed;
  }

  /** Write rows to new files, and add to `actions` the actions that replace their current files (AddFile actions) by the new ones. */
  public void rewrite(OptimisticTransaction transaction, Dataset rows, Seq files, List actions) {
    long now = System.currentTimeMillis();
    for (Object file : Sequences.list(files)) actions.add(((AddFile) file).removeWithTimestamp(now, false));
    for (Object file : Sequences.list(transaction.writeFiles(rows, Option.empty(), true, Sequences.seq(new ArrayList()))))
      actions.add(withoutChange((AddFile) file));
  }

  private static AddFile withoutChange(AddFile file) {
    return copy(file, false, file.stats(), file.deletionVector());
  }

  /** A file with all its rows, those that were deleted as well. */
  static AddFile whole(AddFile file) {
    return copy(file, file.dataChange(), file.stats(), null);
  }

  /** A file with other statistics (JSON). */
  static AddFile withStatistics(AddFile file, String statistics) {
    return copy(file, file.dataChange(), statistics, file.deletionVector());
  }

  private static AddFile copy(AddFile file, boolean dataChange, String statistics, DeletionVectorDescriptor vector) {
    return file.copy(file.path(), file.partitionValues(), file.size(), file.modificationTime(), dataChange, statistics, file.tags(), vector,
        file.baseRowId(), file.defaultRowCommitVersion(), file.clusteringProvider(), file.backReference(), file.amtPassthrough());
  }

  /** A file's name, unique in its table, at the end of its path. */
  static String name(String path) {
    return path.substring(path.lastIndexOf('/') + 1);
  }

  /** Whether filters let all files through. Delta asks so, with the literal true, for the deletion vectors of each scan. */
  static boolean unfiltered(Seq filters) {
    for (Object filter : Sequences.list(filters)) {
      if (!(filter instanceof Literal) || !Boolean.TRUE.equals(((Literal) filter).value())) return false;
    }
    return true;
  }

  /** Delta's index of given files, which returns them without a Dataset if there is no filter. */
  public static final class Chosen extends TahoeBatchFileIndex {
    private final Seq files;

    Chosen(SparkSession session, DeltaLog log, SnapshotDescriptor snapshot, Seq files) {
      super(session, "batch", files, log, log.dataPath(), snapshot, false);
      this.files = files;
    }

    /** An index of other files of the same version. */
    Chosen of(SparkSession session, List some) {
      return new Chosen(session, deltaLog(), snapshot(), Sequences.seq(some));
    }

    List files() {
      return Sequences.list(files);
    }

    int number() {
      return files.size();
    }

    public Seq matchingFiles(Seq partitionFilters, Seq dataFilters) {
      return unfiltered(partitionFilters) ? files : super.matchingFiles(partitionFilters, dataFilters);
    }
  }
}
