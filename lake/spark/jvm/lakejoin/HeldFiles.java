package lakejoin;

import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.FileSourceMetadataAttribute$;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection$;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.deletionvectors.RoaringBitmapArray;
import org.apache.spark.sql.delta.storage.dv.HadoopFileSystemDVStore;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/**
 * Rows of the data files of small tables, held from one refresh to the next. A data file never changes: what a later version of its table
 * deletes from it is in that version's deletion vector. So all rows of a file are held, and each version is read without those that it
 * deletes; only files that came since are read. What was not asked for longest is let go first.
 */
final class HeldFiles {
  private static final long OF_ROW = 64; // of the objects for a row, beside its bytes
  private static final long OF_FILE = 512; // of those for a file
  private static final String[] SETTINGS = {"spark.sql.parquet.", "spark.sql.legacy.", "spark.sql.session.timeZone", "spark.sql.ansi."};
  private static final LinkedHashMap HELD = new LinkedHashMap(64, 0.75f, true);
  private static long bytes = 0;
  private static long most = Math.max(16L << 20, Runtime.getRuntime().maxMemory() / 20);

  /** All rows of one file in some columns, in its order, and the deletion vector that was last used with it. */
  private static final class File {
    final UnsafeRow[] rows;
    final long size;
    private String vector = "";
    private RoaringBitmapArray deleted;

    File(List of) {
      rows = (UnsafeRow[]) of.toArray(new UnsafeRow[of.size()]);
      long found = OF_FILE;
      for (int i = 0; i < rows.length; i++) found += OF_ROW + rows[i].getSizeInBytes();
      size = found;
    }

    /** The rows that a version of the table has deleted from it; null for none. */
    synchronized RoaringBitmapArray deleted(DeltaLog log, AddFile as) {
      if (as.deletionVector() == null) return null;
      String id = as.deletionVector().uniqueId();
      if (!id.equals(vector)) {
        deleted = new HadoopFileSystemDVStore(log.newDeltaHadoopConf()).read(as.deletionVector(), log.dataPath());
        vector = id;
      }
      return deleted;
    }
  }

  private final LogicalRelation leaf;
  private final Files.Chosen chosen;
  private final List columns; // expressions over the relation's, one for each column of the plan

  private HeldFiles(LogicalRelation leaf, List columns) {
    this.leaf = leaf;
    this.chosen = (Files.Chosen) ((HadoopFsRelation) leaf.relation()).location();
    this.columns = columns;
  }

  /** The files of a plan that names columns of chosen files, and does no more; null for another plan. */
  static HeldFiles of(LogicalPlan plan) {
    List columns = columns(plan);
    return columns == null ? null : new HeldFiles((LogicalRelation) plan.collectLeaves().head(), columns);
  }

  /** Whether the log says that the files have more than so many rows. */
  boolean hasMore(int limit) {
    long found = 0;
    for (Object each : chosen.files()) {
      Option number = ((AddFile) each).numLogicalRecords();
      if (number.isEmpty()) return false;
      found += (Long) number.get();
    }
    return found > limit;
  }

  /** The rows of the plan; null for more than twice so many, the deleted ones included. */
  InternalRow[] rows(SparkSession session, int limit) {
    Map held = held(session, chosen.files(), limit);
    if (held == null) return null;
    List rows = new ArrayList();
    for (Object each : chosen.files()) {
      File file = (File) held.get(key((AddFile) each));
      RoaringBitmapArray deleted = file.deleted(chosen.deltaLog(), (AddFile) each);
      if (deleted == null) {
        rows.addAll(Arrays.asList((Object[]) file.rows));
      } else {
        for (int i = 0; i < file.rows.length; i++) if (!deleted.contains(i)) rows.add(file.rows[i]);
      }
    }
    return (InternalRow[]) rows.toArray(new InternalRow[rows.size()]);
  }

  /**
   * The rows that came and went, each with its weight after its columns, none of them 0. `before`, `after`: the files (AddFile actions) that only
   * one of two versions has, and those of which it has other rows. Null as in `rows`.
   */
  InternalRow[] changes(SparkSession session, List before, List after, int limit) {
    List both = new ArrayList(before);
    both.addAll(after);
    Map held = held(session, both, limit);
    if (held == null) return null;
    Map weights = new LinkedHashMap();
    add(weights, before, -1, held, chosen.deltaLog());
    add(weights, after, 1, held, chosen.deltaLog());
    return weighted(weights);
  }

  /** Add a weight to each row of some files. Equal rows are one, bit by bit. */
  private static void add(Map weights, List files, long weight, Map held, DeltaLog log) {
    for (Object each : files) {
      File file = (File) held.get(key((AddFile) each));
      RoaringBitmapArray deleted = file.deleted(log, (AddFile) each);
      for (int i = 0; i < file.rows.length; i++) {
        if (deleted != null && deleted.contains(i)) continue;
        LocalRows.add(weights, file.rows[i], weight, true);
      }
    }
  }

  private InternalRow[] weighted(Map weights) {
    List all = new ArrayList(columns);
    all.add(new Literal(Long.valueOf(0), DataTypes.LongType)); // stands for a weight
    List found = LocalRows.joined(compiled(all), weights);
    return (InternalRow[]) found.toArray(new InternalRow[found.size()]);
  }

  /** Some files by their keys, those that are not held yet read together; null for too many rows. */
  private Map held(SparkSession session, List files, int limit) {
    if (physical(files) > 2L * limit) return null;
    String table = table(session);
    Map found = new HashMap();
    Map missing = new LinkedHashMap();
    synchronized (HELD) {
      for (Object each : files) {
        String key = key((AddFile) each);
        Object held = HELD.get(table + key);
        if (held == null) missing.put(key, each);
        else found.put(key, held);
      }
    }
    if (missing.isEmpty()) return found;
    if (!read(session, new ArrayList(missing.values()), found, 2 * limit)) return null;
    for (Object key : missing.keySet()) hold(table + key, (File) found.get(key));
    return found;
  }

  /** Add some files to `found`, by their keys. False where they are more than so many, or not told apart as expected. */
  private boolean read(SparkSession session, List missing, Map found, int limit) {
    Map byName = new HashMap();
    for (Object each : missing) byName.put(Files.name(((AddFile) each).path()), each);
    Map rows = new HashMap();
    for (Object each : missing) rows.put(each, new ArrayList());
    if (byName.size() < missing.size()) return false;
    if (DataFileRows.read(session, (HadoopFsRelation) leaf.relation(), chosen.deltaLog(), columns, missing, rows, limit)) {
      for (Object each : missing) found.put(key((AddFile) each), new File((List) rows.get(each)));
      return true;
    }
    InternalRow[] all = Plans.first(session, Dataset.ofRows(session, reading(session, missing)).queryExecution(), limit + 1);
    if (all.length > limit) return false;
    int number = columns.size();
    UnsafeProjection own = compiled(columns);
    String path = null;
    List of = null;
    for (int i = 0; i < all.length; i++) {
      String now = all[i].getUTF8String(number).toString();
      if (!now.equals(path)) {
        path = now;
        of = (List) rows.get(byName.get(Files.name(path)));
      }
      if (of == null || (all[i].numFields() > number + 1 && all[i].getLong(number + 1) != of.size())) return false;
      of.add(own.apply(all[i]).copy());
    }
    for (Object each : missing) found.put(key((AddFile) each), new File((List) rows.get(each)));
    return true;
  }

  /** Rows of any types as they are held. */
  private static UnsafeProjection compiled(List columns) {
    return UnsafeProjection$.MODULE$.create(Sequences.seq(LocalRows.bound(columns)));
  }

  /** All rows of some files, with those that are deleted, and of each row its file and its place in it. */
  private LogicalPlan reading(SparkSession session, List missing) {
    List whole = new ArrayList();
    for (Object each : missing) whole.add(Files.whole((AddFile) each));
    HadoopFsRelation before = (HadoopFsRelation) leaf.relation();
    HadoopFsRelation of = new HadoopFsRelation(chosen.of(session, whole), before.partitionSchema(), before.dataSchema(), before.bucketSpec(),
        before.fileFormat(), before.options(), session);
    LogicalRelation plain = leaf.copy(of, leaf.output(), leaf.catalogTable(), leaf.isStreaming(), leaf.stream());
    LogicalRelation relation = metadata(plain) == null ? plain.withMetadataColumns() : plain;
    Attribute metadata = metadata(relation);
    StructType fields = (StructType) metadata.dataType();
    List made = new ArrayList();
    for (Object each : columns) made.add(Plans.alias((Expression) each, "c" + made.size()));
    for (String name : new String[] {"file_path", "row_index"}) { // no row_index: the table has no deletion vectors
      if (!fields.getFieldIndex(name).isDefined()) continue;
      made.add(Plans.alias(new GetStructField(metadata, fields.fieldIndex(name), Option.apply(name)), name));
    }
    return new Project(Sequences.seq(made), relation);
  }

  private static Attribute metadata(LogicalRelation relation) {
    for (Object each : Sequences.list(relation.output())) {
      if (FileSourceMetadataAttribute$.MODULE$.isValid(((Attribute) each).metadata())) return (Attribute) each;
    }
    return null;
  }

  /** What the plan's columns are in its relation; null where the plan is not made of columns of chosen files under other names. */
  private static List columns(LogicalPlan plan) {
    if (plan instanceof LogicalRelation) {
      Object relation = ((LogicalRelation) plan).relation();
      return relation instanceof HadoopFsRelation && ((HadoopFsRelation) relation).location() instanceof Files.Chosen
          ? Sequences.list(plan.output()) : null;
    }
    if (!(plan instanceof Project)) return null;
    LogicalPlan child = ((Project) plan).child();
    List below = columns(child);
    if (below == null) return null;
    Map byId = new HashMap();
    for (Object each : Sequences.list(child.output())) byId.put(((Attribute) each).exprId(), below.get(byId.size()));
    List found = new ArrayList();
    for (Object each : Sequences.list(((Project) plan).projectList())) {
      Expression one = renamed((Expression) each, byId);
      if (one == null) return null;
      found.add(one);
    }
    return found;
  }

  private static Expression renamed(Expression of, Map byId) {
    if (of instanceof Attribute) return (Expression) byId.get(((Attribute) of).exprId());
    if (of instanceof Alias) return renamed(((Alias) of).child(), byId);
    if (!(of instanceof GetStructField)) return null;
    GetStructField field = (GetStructField) of;
    Expression child = renamed(field.child(), byId);
    return child == null ? null : new GetStructField(child, field.ordinal(), field.name());
  }

  /** Names all that the rows of a file depend on besides the file. */
  private String table(SparkSession session) {
    HadoopFsRelation relation = (HadoopFsRelation) leaf.relation();
    StringBuilder text = new StringBuilder(chosen.deltaLog().dataPath().toString());
    text.append('\n').append(chosen.snapshot().metadata().id()).append('\n').append(chosen.snapshot().metadata().configuration());
    text.append('\n').append(relation.dataSchema().json()).append('\n').append(relation.partitionSchema().json());
    for (Object each : columns) text.append('\n').append(described((Expression) each));
    Map settings = ActiveSession.settings(session, SETTINGS, new String[0]);
    return digest(text.append('\n').append(settings).toString()) + " ";
  }

  /** A short name of a long text: schemas are long, and each file is held under one. */
  static String digest(String text) {
    try {
      byte[] found = MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8));
      return new BigInteger(1, found).toString(36);
    } catch (NoSuchAlgorithmException never) { // each Java has it
      throw new IllegalStateException(never);
    }
  }

  private static String described(Expression column) {
    if (column instanceof GetStructField) return described(((GetStructField) column).child()) + "." + ((GetStructField) column).ordinal();
    String name = ((Attribute) column).name();
    return name.length() + ":" + name; // so that no name is taken for another one with what follows
  }

  private static String key(AddFile file) {
    return file.path() + " " + file.size();
  }

  private static long physical(List files) {
    long found = 0;
    for (Object each : files) {
      Option number = ((AddFile) each).numPhysicalRecords();
      if (number.isDefined()) found += (Long) number.get();
    }
    return found;
  }

  private static void hold(String key, File file) {
    synchronized (HELD) {
      File before = (File) HELD.put(key, file);
      bytes += file.size - (before == null ? 0 : before.size);
      letGo();
    }
  }

  private static void letGo() {
    Iterator oldest = HELD.values().iterator();
    while (bytes > most) {
      bytes -= ((File) oldest.next()).size;
      oldest.remove();
    }
  }

  /** Hold at most so many bytes from now on; returns how many it were. */
  static long atMost(long number) {
    synchronized (HELD) {
      long before = most;
      most = number;
      letGo();
      return before;
    }
  }

  /** How many bytes are held. */
  static long held() {
    synchronized (HELD) {
      return bytes;
    }
  }
}
