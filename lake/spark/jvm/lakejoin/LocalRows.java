package lakejoin;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import net.razorvine.pickle.Unpickler;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.InterpretedUnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.IsNaN;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection$;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.immutable.Seq;

/**
 * Weighted rows on the driver, added up and paired one by one (lake/spark/zset.py): for few rows, planning it takes longer than the rows do.
 * Rows are the same where they are bit by bit, as zset.canonical says it. Each method returns null where frames are not of rows on the driver, or
 * have columns of types for which this is not simply done (nested ones, VARIANT, collations): Spark then does it.
 */
public final class LocalRows {
  private static final String WEIGHT = "w";
  private static final int COMPILED = 20_000; // from so many rows on, code for them is worth its making
  private static final int MOST = 100_000; // rows that are made of few with large weights

  /** Rows, and what each column is in them. */
  private static final class Rows {
    final List columns; // Attribute
    final List values; // Expression over the data
    final List data;

    Rows(List columns, List values, List data) {
      this.columns = columns;
      this.values = values;
      this.data = data;
    }

    int of(String name) {
      for (int i = 0; i < columns.size(); i++) if (((Attribute) columns.get(i)).name().equals(name)) return i;
      return -1;
    }

    boolean has(List names) {
      for (Object name : names) if (of((String) name) < 0 || !simple(((Attribute) columns.get(of((String) name))).dataType())) return false;
      return true;
    }

    /** The same of columns that are a key: these are equal where Spark says so, for which -0.0 is 0.0. */
    boolean hasKey(List names) {
      if (!has(names)) return false;
      for (Object column : named(names)) if (floats(((Attribute) column).dataType())) return false;
      return true;
    }

    List named(List names) {
      List found = new ArrayList();
      for (Object name : names) found.add(columns.get(of((String) name)));
      return found;
    }

    /** A column's number in a row. */
    long number(int column, InternalRow row) {
      return ((Long) ((Expression) values.get(column)).eval(row)).longValue();
    }

    /** Some columns of each row; a NaN is always the same. */
    UnsafeProjection projection(List names) {
      List made = new ArrayList();
      for (Object name : names) {
        Expression value = (Expression) values.get(of((String) name));
        Object nan = value.dataType() instanceof DoubleType ? (Object) Double.valueOf(Double.NaN) : Float.valueOf(Float.NaN);
        made.add(floats(value.dataType()) ? new If(new IsNaN(value), new Literal(nan, value.dataType()), value) : value);
      }
      return projected(made, data.size());
    }
  }

  /** Weighted rows added up, zeros dropped: of each frame times 1, or times -1 where `signs` has a minus at its place. */
  public Dataset added(SparkSession session, List frames, String signs) {
    List sides = new ArrayList();
    for (Object frame : frames) {
      Rows side = rows(session, (Dataset) frame);
      if (side == null) return null;
      sides.add(side);
    }
    return total(session, sides, signs);
  }

  /** The rows of a weighted frame added up, by a job where they are not known; null also for more than twice so many. */
  public Dataset collected(SparkSession session, Dataset frame, int limit) {
    QueryExecution query = frame.queryExecution();
    List columns = Sequences.list(query.analyzed().output());
    for (Object each : columns) if (!simple(((Attribute) each).dataType())) return null;
    Rows known = rows(session, frame);
    if (known == null) {
      InternalRow[] found = Plans.first(session, query, 2 * limit + 1);
      if (found.length > 2 * limit) return null;
      known = new Rows(columns, bound(columns), Arrays.asList((Object[]) found));
    }
    return total(session, Collections.singletonList(known), "+");
  }

  private static Dataset total(SparkSession session, List sides, String signs) {
    Rows first = (Rows) sides.get(0);
    List names = new ArrayList(), columns = new ArrayList();
    for (Object each : first.columns) {
      if (!((Attribute) each).name().equals(WEIGHT)) names.add(((Attribute) each).name());
    }
    boolean[] nullable = new boolean[names.size()];
    Map weights = new LinkedHashMap();
    for (int s = 0; s < sides.size(); s++) {
      Rows side = (Rows) sides.get(s);
      int weight = side.of(WEIGHT);
      if (!side.has(names) || side.columns.size() != names.size() + (weight < 0 ? 0 : 1)) return null;
      List own = side.named(names), of = first.named(names);
      for (int i = 0; i < nullable.length; i++) {
        if (!((Attribute) own.get(i)).dataType().equals(((Attribute) of.get(i)).dataType())) return null;
        nullable[i] = nullable[i] || ((Attribute) own.get(i)).nullable();
      }
      UnsafeProjection projection = side.projection(names);
      int sign = signs.charAt(s) == '-' ? -1 : 1;
      for (Object each : side.data) {
        InternalRow row = (InternalRow) each;
        add(weights, projection.apply(row), weight < 0 ? sign : sign * side.number(weight, row), false);
      }
    }
    for (Object each : first.named(names)) columns.add(((Attribute) ((Attribute) each).newInstance()).withNullability(nullable[columns.size()]));
    columns.add(number(WEIGHT));
    return local(session, columns, joined(projected(bound(columns), weights.size()), weights));
  }

  /** Add a weight to that of a row, which is let go at 0. Equal rows are one, bit by bit. `kept`: the row stays as it is. */
  static void add(Map weights, UnsafeRow row, long weight, boolean kept) {
    Object[] had = (Object[]) weights.get(row);
    long now = weight + (had == null ? 0 : ((Long) had[0]).longValue());
    if (now == 0) weights.remove(row);
    else if (had == null) weights.put(kept ? row : row.copy(), new Object[] {Long.valueOf(now)});
    else had[0] = Long.valueOf(now);
  }

  /**
   * The rows whose weight (in a column) has a sign (1 or -1), as often as it says, without it; null also where `all`, and one has the other
   * sign, and for very many rows.
   */
  public Dataset repeated(SparkSession session, Dataset frame, String named, int sign, boolean all) {
    Rows rows = rows(session, frame);
    int weight = rows == null ? -1 : rows.of(named);
    if (weight < 0) return null;
    List names = new ArrayList(), columns = new ArrayList(), found = new ArrayList();
    for (Object each : rows.columns) if (each != rows.columns.get(weight)) names.add(((Attribute) each).name());
    if (!rows.has(names)) return null;
    for (Object each : rows.named(names)) columns.add(((Attribute) each).newInstance());
    UnsafeProjection projection = rows.projection(names);
    for (Object each : rows.data) {
      long number = sign * rows.number(weight, (InternalRow) each);
      if (number < 0 && all) return null;
      if (number > MOST - found.size()) return null;
      if (number <= 0) continue;
      InternalRow row = projection.apply((InternalRow) each).copy();
      for (long i = 0; i < number; i++) found.add(row);
    }
    return local(session, columns, found);
  }

  /**
   * Of weighted rows, a row a key: the key's columns as k0, k1, ..., how many of its rows are inserted, how many deleted, and the first that is
   * inserted, as a struct. `names`: pickled lists of the key's columns, and of the struct's; then the names of the weight and of the last three.
   */
  public Dataset byKeys(SparkSession session, Dataset frame, byte[] names) throws Exception {
    List given = (List) new Unpickler().loads(names);
    List keys = (List) given.get(0), struct = (List) given.get(1), own = given.subList(2, 6);
    Rows rows = rows(session, frame);
    if (rows == null || !rows.hasKey(keys) || !rows.has(struct)) return null;
    int weight = rows.of((String) own.get(0));
    UnsafeProjection key = rows.projection(keys), whole = rows.projection(struct);
    Map found = new LinkedHashMap();
    for (Object each : rows.data) {
      InternalRow row = (InternalRow) each;
      UnsafeRow at = key.apply(row);
      Object[] of = (Object[]) found.get(at);
      if (of == null) {
        of = new Object[] {Long.valueOf(0), Long.valueOf(0), null};
        found.put(at.copy(), of);
      }
      long number = rows.number(weight, row);
      int side = number > 0 ? 0 : 1;
      of[side] = Long.valueOf(((Long) of[side]).longValue() + Math.abs(number));
      if (side == 0 && of[2] == null) of[2] = whole.apply(row).copy();
    }
    List columns = new ArrayList();
    for (Object each : rows.named(keys)) {
      columns.add(((Attribute) ((Attribute) each).newInstance()).withName("k" + columns.size()));
    }
    columns.add(number((String) own.get(1)));
    columns.add(number((String) own.get(2)));
    List fields = new ArrayList();
    for (Object each : rows.named(struct)) {
      fields.add(new Literal(UTF8String.fromString(((Attribute) each).name()), DataTypes.StringType));
      fields.add(each);
    }
    DataType type = new CreateNamedStruct(Sequences.seq(fields)).dataType();
    columns.add(new AttributeReference((String) own.get(3), type, true, Metadata.empty(), NamedExpression.newExprId(), Sequences.seq(new ArrayList())));
    return local(session, columns, joined(projected(bound(columns), found.size()), found));
  }

  /**
   * Where rows of a table lie that are looked for: of each table row that is among `sought` in some columns, these and the `others` of both.
   * `names`: pickled lists of the columns, of those of `sought`, of those of the table. `most`: of equal rows no more than the first of the columns
   * of `sought` says.
   */
  public Dataset found(SparkSession session, Dataset table, Dataset sought, byte[] names, boolean most) throws Exception {
    List given = (List) new Unpickler().loads(names);
    List keys = (List) given.get(0), own = (List) given.get(1), others = (List) given.get(2);
    Rows wanted = rows(session, sought), held = rows(session, table);
    if (wanted == null || held == null || !wanted.has(own) || !held.has(others)) return null;
    if (most ? !wanted.has(keys) || !held.has(keys) : !wanted.hasKey(keys) || !held.hasKey(keys)) return null;
    List columns = new ArrayList(held.named(keys)), other = wanted.named(keys);
    for (int i = 0; i < columns.size(); i++) {
      if (!((Attribute) columns.get(i)).dataType().equals(((Attribute) other.get(i)).dataType())) return null;
    }
    Map by = new HashMap();
    UnsafeProjection key = wanted.projection(keys), rest = wanted.projection(own);
    int number = wanted.of((String) own.get(0));
    for (Object each : wanted.data) {
      InternalRow row = (InternalRow) each;
      Object[] of = new Object[] {rest.apply(row).copy(), Long.valueOf(most ? wanted.number(number, row) : Long.MAX_VALUE)};
      if (by.put(key.apply(row).copy(), of) != null) return null;
    }
    columns.addAll(wanted.named(own));
    columns.addAll(held.named(others));
    List made = new ArrayList(), found = new ArrayList();
    for (Object each : columns) made.add(((Attribute) each).newInstance());
    UnsafeProjection at = held.projection(keys), place = held.projection(others), whole = projected(bound(columns), by.size());
    for (Object each : held.data) {
      InternalRow row = (InternalRow) each;
      UnsafeRow same = at.apply(row);
      Object[] of = (Object[]) by.get(same);
      if (of == null || ((Long) of[1]).longValue() == 0) continue;
      of[1] = Long.valueOf(((Long) of[1]).longValue() - 1);
      found.add(whole.apply(new JoinedRow(new JoinedRow(same, (InternalRow) of[0]), place.apply(row))).copy());
    }
    return local(session, made, found);
  }

  /** Each row of a map with the values that it stands for after its own, as `whole` makes them one row. */
  static List joined(UnsafeProjection whole, Map of) {
    List found = new ArrayList();
    for (Object each : of.entrySet()) {
      InternalRow values = new GenericInternalRow((Object[]) ((Map.Entry) each).getValue());
      found.add(whole.apply(new JoinedRow((InternalRow) ((Map.Entry) each).getKey(), values)).copy());
    }
    return found;
  }

  /** The rows of a frame that are on the driver; null for another frame. */
  private static Rows rows(SparkSession session, Dataset frame) {
    LogicalPlan plan = frame.queryExecution().analyzed();
    Rows found = rows(plan);
    if (found != null || !computed(plan)) return found;
    Prepared.Found ready = Prepared.rows(session, plan, Integer.MAX_VALUE);
    if (ready != null) {
      List columns = Sequences.list(plan.output());
      return new Rows(columns, bound(columns), Arrays.asList((Object[]) ready.rows));
    }
    found = rows(frame.queryExecution().optimizedPlan()); // as the optimiser will do for whatever reads the frame
    return found == null ? null : new Rows(Sequences.list(plan.output()), found.values, found.data);
  }

  /** Whether the optimiser may compute the plan's rows: expressions over rows on the driver. */
  private static boolean computed(LogicalPlan plan) {
    while (plan instanceof Project || plan instanceof Filter) plan = (LogicalPlan) plan.children().head();
    return plan instanceof LocalRelation;
  }

  /** A frame's rows that are on the driver, or are expressions over few that are; null for others, and for other types. */
  static List few(SparkSession session, Dataset frame, int most) {
    LogicalPlan plan = frame.queryExecution().analyzed();
    if (!computed(plan) || ((LocalRelation) plan.collectLeaves().head()).data().size() > most) return null;
    Rows rows = rows(session, frame);
    Seq found = rows == null ? null : named(rows);
    return found == null ? null : Sequences.list(found);
  }

  /** Whether a plan does no more than to name columns of rows on the driver, of simple types. */
  static boolean isNamed(LogicalPlan plan) {
    Rows rows = rows(plan);
    return rows != null && simple(rows);
  }

  /** The rows of such a plan; null for another one. */
  static Seq named(LogicalPlan plan) {
    Rows rows = rows(plan);
    return rows == null ? null : named(rows);
  }

  private static boolean simple(Rows rows) {
    for (Object each : rows.values) if (!simple(((Expression) each).dataType())) return false;
    return true;
  }

  private static Seq named(Rows rows) {
    if (!simple(rows)) return null;
    UnsafeProjection projection = projected(rows.values, rows.data.size());
    List found = new ArrayList(rows.data.size());
    for (Object each : rows.data) found.add(projection.apply((InternalRow) each).copy());
    return DriverRows.of(found);
  }

  private static Rows rows(LogicalPlan plan) {
    if (plan instanceof LocalRelation) {
      List columns = Sequences.list(plan.output());
      return new Rows(columns, bound(columns), Sequences.list(((LocalRelation) plan).data()));
    }
    Rows below = plan instanceof Project ? rows(((Project) plan).child()) : null;
    if (below == null) return null;
    Map byId = new HashMap();
    for (int i = 0; i < below.columns.size(); i++) byId.put(((Attribute) below.columns.get(i)).exprId(), below.values.get(i));
    List values = new ArrayList();
    for (Object each : Sequences.list(((Project) plan).projectList())) {
      Expression of = each instanceof Alias ? ((Alias) each).child() : (Expression) each;
      Object value = of instanceof Literal ? of : of instanceof Attribute ? byId.get(((Attribute) of).exprId()) : null;
      if (value == null) return null;
      values.add(value);
    }
    return new Rows(Sequences.list(plan.output()), values, below.data);
  }

  /** Whether values of the type are the same where their bytes are, but for NaN. */
  static boolean simple(DataType type) {
    if (type instanceof StringType) return ((StringType) type).collationId() == 0;
    return type instanceof LongType || type instanceof IntegerType || type instanceof ShortType || type instanceof ByteType
        || type instanceof DecimalType || type instanceof DateType || type instanceof TimestampType || type instanceof TimestampNTZType
        || type instanceof BooleanType || type instanceof BinaryType || type instanceof DoubleType || type instanceof FloatType;
  }

  private static boolean floats(DataType type) {
    return type instanceof DoubleType || type instanceof FloatType;
  }

  private static UnsafeProjection projected(List expressions, int rows) {
    Seq of = Sequences.seq(expressions);
    return rows < COMPILED ? InterpretedUnsafeProjection.createProjection(of) : UnsafeProjection$.MODULE$.create(of);
  }

  /** Columns (or other expressions) by their places in rows that have their values in this order. */
  static List bound(List columns) {
    List found = new ArrayList();
    for (Object each : columns) found.add(new BoundReference(found.size(), ((Expression) each).dataType(), ((Expression) each).nullable()));
    return found;
  }

  private static Attribute number(String name) {
    return new AttributeReference(name, DataTypes.LongType, false, Metadata.empty(), NamedExpression.newExprId(), Sequences.seq(new ArrayList()));
  }

  private static Dataset local(SparkSession session, List columns, List rows) {
    return Plans.local(session, columns, DriverRows.of(rows));
  }
}
