package lakejoin;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.delta.actions.AddCDCFile;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.actions.DeletionVectorDescriptor;
import org.apache.spark.sql.delta.actions.RemoveFile;
import org.apache.spark.sql.delta.commands.cdc.CDCReader;
import org.apache.spark.sql.delta.files.CdcAddFileIndex;
import org.apache.spark.sql.delta.files.TahoeChangeFileIndex;
import org.apache.spark.sql.delta.files.TahoeRemoveFileIndex;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.Option;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/**
 * Frames of Delta's change reader whose file indexes need no Dataset (lake/delta/file_changes.py): at each scan, Delta's indexes make a Dataset of
 * their files, filter it by partition, and collect it. These return the files directly if there is no filter. They do not know the commit of
 * a row or its time, which nobody uses here.
 */
public final class Changes {
  /** The frame in a session, with such lists. */
  public Dataset listed(SparkSession session, Dataset frame) {
    return Dataset.ofRows(session, listed(session, frame.queryExecution().analyzed()));
  }

  private static LogicalPlan listed(SparkSession session, LogicalPlan plan) {
    if (plan instanceof LogicalRelation && ((LogicalRelation) plan).relation() instanceof HadoopFsRelation) {
      LogicalRelation own = (LogicalRelation) plan;
      HadoopFsRelation of = (HadoopFsRelation) own.relation();
      HadoopFsRelation replaced = new HadoopFsRelation(withoutDataset(session, of.location()), of.partitionSchema(), of.dataSchema(), of.bucketSpec(),
          of.fileFormat(), of.options(), session);
      return own.copy(replaced, own.output(), own.catalogTable(), own.isStreaming(), own.stream());
    }
    List children = new ArrayList();
    for (Object child : Sequences.list(plan.children())) children.add(listed(session, (LogicalPlan) child));
    return children.isEmpty() ? plan : (LogicalPlan) plan.withNewChildren(Sequences.seq(children));
  }

  private static FileIndex withoutDataset(SparkSession session, FileIndex index) {
    if (index.getClass() == TahoeChangeFileIndex.class) return new Changed(session, (TahoeChangeFileIndex) index);
    if (index.getClass() == CdcAddFileIndex.class) return new Added(session, (CdcAddFileIndex) index);
    return index.getClass() == TahoeRemoveFileIndex.class ? new Removed(session, (TahoeRemoveFileIndex) index) : index;
  }

  /** The files of all versions. */
  private static List actions(Seq versions) {
    List found = new ArrayList();
    for (Object each : Sequences.list(versions)) found.addAll(Sequences.list(((CDCReader.CDCDataSpec) each).actions()));
    return found;
  }

  private static AddFile file(String path, Map values, String type, long size, Map tags, DeletionVectorDescriptor vector) {
    Map all = type == null ? values : (Map) values.updated("_change_type", type);
    Option none = Option.empty();
    return new AddFile(path, all, size, 0L, false, null, tags, vector, none, none, none, none, none);
  }

  /** Files that were written for the change feed. */
  public static final class Changed extends TahoeChangeFileIndex {
    Changed(SparkSession session, TahoeChangeFileIndex of) {
      super(session, of.filesByVersion(), of.deltaLog(), of.path(), of);
    }

    public Seq matchingFiles(Seq partitionFilters, Seq dataFilters) {
      if (!Files.unfiltered(partitionFilters)) return super.matchingFiles(partitionFilters, dataFilters);
      List found = new ArrayList();
      for (Object each : actions(filesByVersion())) {
        AddCDCFile file = (AddCDCFile) each;
        found.add(file(file.path(), file.partitionValues(), null, file.size(), file.tags(), null));
      }
      return Sequences.seq(found);
    }
  }

  /** Data files that were added. */
  public static final class Added extends CdcAddFileIndex {
    Added(SparkSession session, CdcAddFileIndex of) {
      super(session, Sequences.seq(Collections.singletonList(new CDCReader.CDCDataSpec(of.version(), null, of.addFiles(), Option.empty()))),
          of.deltaLog(), of.path(), of, of.rowIndexFilters());
    }

    public Seq matchingFiles(Seq partitionFilters, Seq dataFilters) {
      if (!Files.unfiltered(partitionFilters)) return super.matchingFiles(partitionFilters, dataFilters);
      List found = new ArrayList();
      for (Object each : Sequences.list(addFiles())) {
        AddFile file = (AddFile) each;
        found.add(file(file.path(), file.partitionValues(), "insert", file.size(), file.tags(), file.deletionVector()));
      }
      return Sequences.seq(found);
    }
  }

  /** Data files that were removed. */
  public static final class Removed extends TahoeRemoveFileIndex {
    Removed(SparkSession session, TahoeRemoveFileIndex of) {
      super(session, of.filesByVersion(), of.deltaLog(), of.path(), of, of.rowIndexFilters());
    }

    public Seq matchingFiles(Seq partitionFilters, Seq dataFilters) {
      if (!Files.unfiltered(partitionFilters)) return super.matchingFiles(partitionFilters, dataFilters);
      List found = new ArrayList();
      for (Object each : actions(filesByVersion())) {
        RemoveFile file = (RemoveFile) each;
        if (file.partitionValues() == null || file.size().isEmpty()) return super.matchingFiles(partitionFilters, dataFilters);
        found.add(file(file.path(), file.partitionValues(), "delete", (Long) file.size().get(), file.tags(), file.deletionVector()));
      }
      return Sequences.seq(found);
    }
  }
}
