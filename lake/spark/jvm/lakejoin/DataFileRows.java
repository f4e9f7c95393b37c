package lakejoin;

import java.io.Closeable;
import java.net.URI;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.paths.SparkPath;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.FileSourceMetadataAttribute$;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.execution.datasources.FileFormat$;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Function1;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;

/**
 * Reads all rows of some small data files in their order by the table's file format itself, in the calling thread: a plan that does the same takes
 * longer to be made than the rows take to be read.
 */
final class DataFileRows {
  private static final Seq NOTHING = Sequences.seq(new ArrayList());

  private final HadoopFsRelation relation;
  private final Map places = new HashMap(); // of each column that is read, by its name
  private final List fields = new ArrayList(); // StructField

  private DataFileRows(HadoopFsRelation relation) {
    this.relation = relation;
  }

  /**
   * Add the rows of some files (AddFile actions) to `rows`, a list for each file, with those that are deleted: of each row the `columns`, which
   * are columns of the relation, fields of such columns, and the file's path and the row's place in it. False where a plan has to read them: large
   * or many files, partitions, and where reading failed, since a plan's error says which file it was. The lists are empty then.
   */
  static boolean read(SparkSession session, HadoopFsRelation relation, DeltaLog log, List columns, List files, Map rows, int limit) {
    long bytes = 0;
    for (Object each : files) bytes += ((AddFile) each).size();
    DataFileRows reading = new DataFileRows(relation);
    if (bytes + files.size() * OneTask.OPENING > OneTask.MOST_BYTES || !relation.partitionSchema().isEmpty() || !reading.knows(columns)) return false;
    SparkSession before = ActiveSession.swap(session); // its settings are the reader's
    long started = System.currentTimeMillis(), cpu = DriverTask.cpu();
    try {
      if (reading.read(session, log, columns, files, rows, limit)) {
        DriverTask.record(started, cpu, bytes);
        return true;
      }
    } catch (Exception failed) {
      // below
    } finally {
      ActiveSession.swap(before);
    }
    for (Object each : files) ((List) rows.get(each)).clear();
    return false;
  }

  /** Note the table's columns that some columns are made of; false where one is not in the data files, or has a VARIANT, which plans rebuild. */
  private boolean knows(List columns) {
    for (Object each : columns) {
      Expression of = (Expression) each;
      if (ofFile(of)) continue;
      while (of instanceof GetStructField) of = ((GetStructField) of).child();
      String name = ((Attribute) of).name();
      if (relation.dataSchema().getFieldIndex(name).isEmpty()) return false;
      if (relation.dataSchema().apply(name).dataType().json().contains("variant")) return false;
      if (places.containsKey(name)) continue;
      places.put(name, Integer.valueOf(fields.size()));
      fields.add(relation.dataSchema().apply(name));
    }
    return !fields.isEmpty();
  }

  /** Whether a column is the path of the file, or a row's place in it. */
  private static boolean ofFile(Expression column) {
    if (!(column instanceof GetStructField) || !(((GetStructField) column).child() instanceof Attribute)) return false;
    Attribute child = (Attribute) ((GetStructField) column).child();
    Option name = ((GetStructField) column).name();
    return FileSourceMetadataAttribute$.MODULE$.isValid(child.metadata()) && (name.contains("file_path") || name.contains("row_index"));
  }

  /** A column over the rows that are read, after whose columns come the file's path and the row's place in it. */
  private Expression bound(Expression column) {
    if (column instanceof GetStructField) {
      GetStructField field = (GetStructField) column;
      if (!ofFile(field)) return new GetStructField(bound(field.child()), field.ordinal(), field.name());
      boolean path = field.name().contains("file_path");
      return new BoundReference(path ? fields.size() : fields.size() + 1, path ? DataTypes.StringType : DataTypes.LongType, false);
    }
    int place = ((Integer) places.get(((Attribute) column).name())).intValue();
    return new BoundReference(place, column.dataType(), true);
  }

  private boolean read(SparkSession session, DeltaLog log, List columns, List files, Map rows, int limit) throws Exception {
    StructType read = new StructType((StructField[]) fields.toArray(new StructField[fields.size()]));
    scala.collection.immutable.Map options =
        (scala.collection.immutable.Map) relation.options().updated(FileFormat$.MODULE$.OPTION_RETURNING_BATCH(), "false");
    Configuration conf = session.sessionState().newHadoopConfWithOptions(relation.options());
    Function1 reader =
        relation.fileFormat().buildReaderWithPartitionValues(session, relation.dataSchema(), relation.partitionSchema(), read, NOTHING, options, conf);
    List made = new ArrayList();
    for (Object each : columns) made.add(bound((Expression) each));
    UnsafeProjection projection = UnsafeProjection$.MODULE$.create(Sequences.seq(made));
    int number = 0;
    for (Object each : files) {
      AddFile file = (AddFile) each;
      Path path = new Path(new URI(file.path()));
      if (!path.isAbsolute()) path = new Path(log.dataPath(), path);
      PartitionedFile whole = new PartitionedFile(InternalRow.empty(), SparkPath.fromPath(path), 0L, file.size(), new String[0], file.modificationTime(),
          file.size(), Map$.MODULE$.empty());
      Object called = ((Function1) relation.fileFormat().fileConstantMetadataExtractors().apply("file_path")).apply(whole);
      number = rowsOf((Iterator) reader.apply(whole), projection, UTF8String.fromString(called.toString()), (List) rows.get(each), number, limit);
      if (number > limit) return false;
    }
    return true;
  }

  private static int rowsOf(Iterator read, UnsafeProjection projection, Object path, List rows, int number, int limit) throws Exception {
    try {
      Object[] place = new Object[] {path, null};
      while (number <= limit && read.hasNext()) {
        place[1] = Long.valueOf(rows.size());
        rows.add(projection.apply(new JoinedRow((InternalRow) read.next(), new GenericInternalRow(place))).copy());
        number++;
      }
      return number;
    } finally {
      if (read instanceof Closeable) ((Closeable) read).close();
    }
  }
}
