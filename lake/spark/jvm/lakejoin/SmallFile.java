package lakejoin;

import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.mapreduce.TaskID;
import org.apache.hadoop.mapreduce.TaskType;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl;
import org.apache.spark.internal.io.FileCommitProtocol;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.types.DataTypeUtils$;
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap$;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.delta.ColumnWithDefaultExprUtils$;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.NoMapping$;
import org.apache.spark.sql.delta.OptimisticTransaction;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.actions.Metadata;
import org.apache.spark.sql.delta.constraints.Constraints$;
import org.apache.spark.sql.delta.files.DelayedCommitProtocol;
import org.apache.spark.sql.delta.hooks.AutoCompact$;
import org.apache.spark.sql.delta.stats.DeltaJobStatisticsTracker;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.OutputWriter;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.execution.datasources.WriteTaskStatsTracker;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.Tuple2;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;

/**
 * Writes few rows that are on the driver as one data file of a Delta table, in the calling thread, with Delta's own Parquet writer and statistics
 * (lake/delta/transaction.py). Delta's write of any rows plans them, analyses the statistics' expressions anew and runs a job: for a thousand
 * rows that takes ten times as long as writing them.
 */
public final class SmallFile {
  private static final int MOST_ROWS = 20_000;
  private static final String[] SETTINGS = {"spark.sql.", "spark.databricks."};
  private static final String[] OF_COMMIT = { // they differ each time
    "spark.databricks.delta.commitInfo.", "spark.databricks.delta.lastCommitVersionInSession", "spark.databricks.delta.write.txn"
  };
  private static final int MOST_STATISTICS = 256; // tables

  /** What Delta computes of the rows of a file for its statistics, by all that this depends on. What was not asked for longest is let go. */
  private static final LinkedHashMap STATISTICS = new LinkedHashMap(64, 0.75f, true);

  /** The columns of a file's rows, as they are named in it, and the expression of their statistics; null for none. */
  private static final class Statistics {
    final Seq columns;
    final Expression expression;

    Statistics(Seq columns, Expression expression) {
      this.columns = columns;
      this.expression = expression;
    }

    /** The expression for one write: it holds a writer of JSON, which no two writes may share. */
    Expression ownExpression() {
      return (Expression) expression.clone();
    }
  }

  /**
   * The action (AddFile) that adds a new file with a frame's rows. Null where Delta has to write them: rows that are not on the driver, or many;
   * other columns than the table's, or of nested types; a table with partitions, constraints, or columns that Delta computes; and where writing
   * failed: Delta's own error is then the one that is raised.
   */
  public AddFile written(SparkSession session, OptimisticTransaction transaction, Dataset frame) {
    Metadata metadata = transaction.metadata();
    if (!plain(session, transaction, metadata)) return null;
    List columns = Sequences.list(frame.queryExecution().analyzed().output());
    if (!sameColumns(columns, metadata.schema())) return null;
    List rows = LocalRows.few(session, frame, MOST_ROWS);
    if (rows == null || rows.isEmpty() || !oneFile(session, rows.size())) return null;
    long started = System.currentTimeMillis(), cpu = DriverTask.cpu();
    try {
      AddFile added = written(session, transaction, frame, rows);
      if (added != null) DriverTask.record(started, cpu, 0L);
      return added;
    } catch (Exception failed) {
      return null;
    }
  }

  /** Whether a table's rows are stored as they are given. */
  private static boolean plain(SparkSession session, OptimisticTransaction transaction, Metadata metadata) {
    if (!metadata.partitionColumns().isEmpty()) return false;
    if (ColumnWithDefaultExprUtils$.MODULE$.tableHasDefaultExpr(transaction.protocol(), metadata, false)) return false;
    scala.collection.Iterator names = metadata.configuration().keysIterator();
    while (names.hasNext()) {
      String name = ((String) names.next()).toLowerCase(Locale.ROOT);
      if (name.contains("iceberg") || name.contains("parquet")) return false; // Delta has more to do, or other options for its writer
    }
    return Constraints$.MODULE$.getAll(metadata, session).isEmpty();
  }

  private static boolean sameColumns(List columns, StructType schema) {
    if (columns.size() != schema.fields().length) return false;
    for (int i = 0; i < columns.size(); i++) {
      Attribute column = (Attribute) columns.get(i);
      StructField field = schema.fields()[i];
      if (!column.name().equals(field.name()) || !column.dataType().equals(field.dataType()) || !LocalRows.simple(field.dataType())) return false;
    }
    return true;
  }

  private static boolean oneFile(SparkSession session, int rows) {
    long most = session.sessionState().conf().maxRecordsPerFile();
    return most <= 0 || rows <= most;
  }

  private static AddFile written(SparkSession session, OptimisticTransaction transaction, Dataset frame, List rows) throws Exception {
    DeltaLog log = transaction.deltaLog();
    Metadata metadata = transaction.metadata();
    Statistics statistics = statistics(session, transaction, frame);
    Configuration conf =
        session.sessionState().newHadoopConfWithOptions((scala.collection.immutable.Map) metadata.configuration().$plus$plus(log.options()));
    if (conf.get("parquet.writer.version") != null) return null; // Delta says whether it applies
    Job job = Job.getInstance(conf);
    job.setOutputKeyClass(Void.class);
    job.setOutputValueClass(InternalRow.class);
    FileOutputFormat.setOutputPath(job, log.dataPath());
    FileFormat format = log.fileFormat(transaction.protocol(), metadata);
    StructType schema = DataTypeUtils$.MODULE$.fromAttributes(statistics.columns);
    scala.collection.immutable.Map options = (scala.collection.immutable.Map) Map$.MODULE$.empty().updated("writePartitionColumns", "false");
    OutputWriterFactory writers = format.prepareWrite(session, job, CaseInsensitiveMap$.MODULE$.apply(options), schema);
    TaskAttemptContext task = new TaskAttemptContextImpl(job.getConfiguration(), new TaskAttemptID(new TaskID("", 0, TaskType.MAP, 0), 0));
    DelayedCommitProtocol files = transaction.getCommitter(log.dataPath());
    files.setupJob(task);
    files.setupTask(task);
    Path path = new Path(files.newTaskTempFile(task, Option.empty(), "-c000" + writers.getFileExtension(task)));
    DeltaJobStatisticsTracker tracker = statistics.expression == null ? null
        : new DeltaJobStatisticsTracker(conf, log.dataPath(), statistics.columns, statistics.ownExpression());
    try {
      write(writers.newInstance(path.toString(), schema, task), rows, tracker);
      FileCommitProtocol.TaskCommitMessage done = files.commitTask(task);
      files.commitJob(task, Sequences.seq(Collections.singletonList(done)));
    } catch (Exception failed) {
      path.getFileSystem(conf).delete(path, false);
      throw failed;
    }
    AddFile added = (AddFile) files.addedStatuses().head();
    transaction.hasWritten_$eq(true);
    transaction.registerPostCommitHook(AutoCompact$.MODULE$);
    new Versions().count(session, transaction, "numFiles=1 numOutputRows=" + rows.size() + " numOutputBytes=" + added.size());
    return tracker == null ? added : Files.withStatistics(added, (String) tracker.recordedStats().apply(path.getName()));
  }

  private static void write(OutputWriter writer, List rows, DeltaJobStatisticsTracker tracker) {
    WriteTaskStatsTracker seen = tracker == null ? null : tracker.newTaskInstance();
    boolean closed = false;
    try {
      if (seen != null) seen.newFile(writer.path());
      for (Object row : rows) {
        writer.write((InternalRow) row);
        if (seen != null) seen.newRow(writer.path(), (InternalRow) row);
      }
      closed = true;
      writer.close();
    } finally {
      if (!closed) writer.close();
    }
    if (seen == null) return;
    seen.closeFile(writer.path());
    tracker.processStats(Sequences.seq(Collections.singletonList(seen.getFinalStats(0L))), 0L);
  }

  /** How many tables' statistics are kept. */
  public int kept() {
    synchronized (STATISTICS) {
      return STATISTICS.size();
    }
  }

  private static Statistics statistics(SparkSession session, OptimisticTransaction transaction, Dataset frame) {
    Metadata metadata = transaction.metadata();
    String table = metadata.schemaString() + "\n" + metadata.configuration() + "\n" + transaction.protocol();
    String key = HeldFiles.digest(table + "\n" + ActiveSession.settings(session, SETTINGS, OF_COMMIT));
    synchronized (STATISTICS) {
      Statistics known = (Statistics) STATISTICS.get(key);
      if (known != null) return known;
    }
    Seq columns = transaction.makeOutputNullable(frame.queryExecution().analyzed().output());
    if (metadata.columnMappingMode() != NoMapping$.MODULE$) columns = transaction.mapColumnAttributes(columns, metadata.columnMappingMode());
    Tuple2 made = transaction.getOptionalStatsTrackerAndStatsCollection(columns, transaction.deltaLog().dataPath(), new StructType(), frame);
    Option tracker = (Option) made._1();
    Expression expression = tracker.isDefined() ? ((DeltaJobStatisticsTracker) tracker.get()).statsColExpr() : null;
    Statistics found = new Statistics(columns, expression);
    synchronized (STATISTICS) {
      STATISTICS.put(key, found);
      Iterator oldest = STATISTICS.values().iterator();
      while (STATISTICS.size() > MOST_STATISTICS) {
        oldest.next();
        oldest.remove();
      }
    }
    return found;
  }
}
