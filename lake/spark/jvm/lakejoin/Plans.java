package lakejoin;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import net.razorvine.pickle.Pickler;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.UpdateAttributeNullability$;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.InterpretedUnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Multiply;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Expand;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.CollectMetricsExec$;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Function1;
import scala.Option;
import scala.Tuple2;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractPartialFunction;

/**
 * Builds plans with a node's expression ids, and reads local rows, in one call from Python each (lake/catalyst/running.py); otherwise each
 * column would need calls. Columns are named c and the id of the attribute that they stand for, weights w.
 */
public final class Plans {
  private static final String WEIGHT = "w";
  private static final String EXCLUDED = "spark.sql.optimizer.excludedRules";
  private static final String TO_LOCAL = "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation";
  private static final Seq NOTHING = Sequences.seq(new ArrayList());
  private static final Seq SESSION = Sequences.seq(Arrays.asList(new Object[] {"spark.sessionWindow"}));

  /** The frame's plan with each column under the expression id that it stands for. `marks`: the metadata of session windows, by id. */
  public LogicalPlan bound(Dataset frame, Map marks) {
    LogicalPlan plan = frame.queryExecution().analyzed();
    List named = new ArrayList();
    for (Object each : Sequences.list(plan.output())) {
      Attribute attribute = (Attribute) each;
      String name = attribute.name();
      if (name.equals(WEIGHT)) {
        named.add(alias(attribute, name));
      } else {
        long id = Long.parseLong(name.substring(1));
        ExprId exprId = new ExprId(id, NamedExpression.newExprId().jvmId());
        named.add(alias(attribute, name, exprId, marks));
      }
    }
    return new Project(Sequences.seq(named), plan);
  }

  /** The same with the columns of the plan that the frame stands for: in their places, under their own names, for what asks by these. */
  public LogicalPlan asWritten(Dataset frame, Map marks, LogicalPlan written) {
    LogicalPlan plan = frame.queryExecution().analyzed();
    Map columns = new LinkedHashMap();
    for (Object each : Sequences.list(plan.output())) columns.put(((Attribute) each).name(), each);
    List named = new ArrayList();
    for (Object each : Sequences.list(written.output())) {
      Attribute attribute = (Attribute) each;
      Attribute column = (Attribute) columns.get("c" + attribute.exprId().id());
      named.add(alias(column, attribute.name(), attribute.exprId(), marks));
    }
    return new Project(Sequences.seq(named), plan);
  }

  /**
   * A plan run over frames, one a child, inside the plans `outers` (the innermost first; null for none). Null where one of the RDDs
   * `placeholders` (their ids between blanks) is left among its leaves.
   */
  public Dataset ran(SparkSession session, LogicalPlan plan, List frames, Map marks, List outers, String placeholders) {
    List children = new ArrayList();
    for (Object frame : frames) children.add(bound((Dataset) frame, marks));
    LogicalPlan top = over(plan, children);
    if (outers != null) {
      for (Object outer : outers) top = (LogicalPlan) ((LogicalPlan) outer).withNewChildren(Sequences.seq(Arrays.asList(new Object[] {top})));
    }
    for (Object leaf : Sequences.list(top.collectLeaves())) {
      if (leaf instanceof LogicalRDD && placeholders.contains(" " + ((LogicalRDD) leaf).rdd().id() + " ")) return null;
    }
    return named(session, top, children);
  }

  /** Remember how Spark marks a column as a session window (by a long: Python would make it an int). */
  public void mark(Map marks, NamedExpression column) {
    marks.put(column.exprId().id(), column.metadata());
  }

  /** A plan over other children, with their weights passed through it. */
  public LogicalPlan over(LogicalPlan plan, List children) {
    List weights = weights(children);
    if (children.isEmpty()) return plan;
    LogicalPlan child = (LogicalPlan) children.get(0);
    if (plan instanceof Project) {
      return new Project(Sequences.seq(both(((Project) plan).projectList(), weights)), child);
    }
    if (plan instanceof Expand) {
      List projections = new ArrayList();
      for (Object each : Sequences.list(((Expand) plan).projections())) projections.add(Sequences.seq(both((Seq) each, weights)));
      return new Expand(Sequences.seq(projections), Sequences.seq(both(plan.output(), weights)), child);
    }
    if (plan instanceof Generate) {
      Generate own = (Generate) plan;
      return new Generate(own.generator(), unrequired(own, child), own.outer(), own.qualifier(), own.generatorOutput(), child);
    }
    return (LogicalPlan) plan.withNewChildren(Sequences.seq(children));
  }

  /** Which columns of a child do not leave a plan (by their positions, which are others than in the plan); weights do. */
  private static Seq unrequired(Generate plan, LogicalPlan child) {
    Set leaving = new HashSet();
    addIds(plan.output(), leaving);
    List found = new ArrayList();
    int position = 0;
    for (Object each : Sequences.list(child.output())) {
      Attribute column = (Attribute) each;
      if (!column.name().equals(WEIGHT) && !leaving.contains(column.exprId())) found.add(position);
      position++;
    }
    return Sequences.seq(found);
  }

  /** The plan as a frame: columns by attribute id, each once, and the product of the children's weights. */
  public Dataset named(SparkSession session, LogicalPlan plan, List children) {
    Set weights = new HashSet();
    for (Object each : weights(children)) weights.add(((Attribute) each).exprId().id());
    Map columns = new LinkedHashMap();
    for (Object each : Sequences.list(plan.output())) {
      Attribute attribute = (Attribute) each;
      long id = attribute.exprId().id();
      if (!weights.contains(id)) {
        columns.putIfAbsent("c" + id, attribute);
      } else {
        Expression before = (Expression) columns.get(WEIGHT);
        columns.put(WEIGHT, before == null ? (Expression) attribute : new Multiply(before, attribute));
      }
    }
    List made = new ArrayList();
    for (Object each : columns.entrySet()) {
      Map.Entry column = (Map.Entry) each;
      made.add(alias((Expression) column.getValue(), (String) column.getKey()));
    }
    return framed(session, new Project(Sequences.seq(made), plan));
  }

  /** A frame of a plan whose expressions are made of its children's columns as these are, and whose children are analysed: it need not be. */
  static Dataset resolved(SparkSession session, LogicalPlan plan) {
    if (plan.resolved()) plan.setAnalyzed();
    return Dataset.ofRows(session, plan);
  }

  /**
   * A frame of operators with analysed expressions over one analysed plan: what the analyser would do is to see which columns can be NULL now.
   * Where a column has an id that occurs below, too (a node's columns have the same ids on each level), it gives one of them another.
   */
  private static Dataset framed(SparkSession session, LogicalPlan plan) {
    return apart(plan) ? resolved(session, UpdateAttributeNullability$.MODULE$.apply(plan)) : Dataset.ofRows(session, plan);
  }

  /** Whether a plan is made of operators over one analysed plan, and none of their columns has an id of one in it. */
  private static boolean apart(LogicalPlan plan) {
    Set ids = new HashSet();
    while (!plan.analyzed() && plan.children().size() == 1) {
      addIds(plan.output(), ids);
      plan = (LogicalPlan) plan.children().head();
    }
    return plan.analyzed() && Collections.disjoint(ids, ids(plan));
  }

  /** Whether no two plans have a column of the same id anywhere. */
  static boolean apart(List plans) {
    Set all = new HashSet();
    for (Object plan : plans) {
      Set ids = ids((LogicalPlan) plan);
      if (!Collections.disjoint(all, ids)) return false;
      all.addAll(ids);
    }
    return true;
  }

  /** The ids of all columns in a plan. */
  private static Set ids(LogicalPlan plan) {
    Set found = new HashSet();
    addIds(plan.output(), found);
    for (Object child : Sequences.list(plan.children())) found.addAll(ids((LogicalPlan) child));
    return found;
  }

  private static void addIds(Seq columns, Set ids) {
    for (Object each : Sequences.list(columns)) ids.add(((Attribute) each).exprId());
  }

  /** The ids of the RDDs among a plan's leaves, each after a blank. */
  public String rdds(LogicalPlan plan) {
    StringBuilder found = new StringBuilder();
    for (Object leaf : Sequences.list(plan.collectLeaves())) {
      if (leaf instanceof LogicalRDD) found.append(' ').append(((LogicalRDD) leaf).rdd().id());
    }
    return found.toString();
  }

  /** Expressions over a frame's rows under some names (separated by commas), after its own columns where these are kept. */
  public Dataset project(SparkSession session, Dataset frame, Map marks, List expressions, String names, boolean keep) {
    LogicalPlan plan = bound(frame, marks);
    List made = new ArrayList();
    if (keep) {
      for (Object each : Sequences.list(plan.output())) made.add(alias((Attribute) each, ((Attribute) each).name()));
    }
    String[] each = names.split(",");
    for (int i = 0; i < expressions.size(); i++) made.add(alias((Expression) expressions.get(i), each[i]));
    return framed(session, new Project(Sequences.seq(made), plan));
  }

  /** A frame under other column names (separated by commas); local rows stay as they are. */
  public Dataset renamed(SparkSession session, Dataset frame, String names) {
    LogicalPlan plan = frame.queryExecution().analyzed();
    List wanted = Arrays.asList(names.split(","));
    if (!(plan instanceof LocalRelation)) return frame.toDF(Sequences.seq(wanted));
    return local(session, plan.output(), wanted, ((LocalRelation) plan).data());
  }

  /** A frame's rows as a local relation where the optimiser knows them already, and they are not too many; else null. */
  public Dataset folded(SparkSession session, Dataset frame, int limit) {
    LogicalPlan analyzed = frame.queryExecution().analyzed();
    if (analyzed instanceof LocalRelation) return ((LocalRelation) analyzed).data().size() > limit ? null : frame;
    Seq named = LocalRows.named(analyzed);
    if (named != null) return named.size() > limit ? null : local(session, analyzed.output(), names(analyzed), named);
    LogicalPlan plan = optimized(session, frame.queryExecution());
    if (!(plan instanceof LocalRelation) || ((LocalRelation) plan).data().size() > limit) return null;
    // the optimiser made it, and would again in each plan to come
    return local(session, plan.output(), names(analyzed), ((LocalRelation) plan).data());
  }

  /** The same of any frame, by a job where its rows are not known; null where they are too many. */
  public Dataset collected(SparkSession session, Dataset frame, int limit) {
    QueryExecution query = frame.queryExecution();
    Prepared.Found found = LocalRows.isNamed(query.analyzed()) ? null : Prepared.rows(session, query.analyzed(), limit + 1);
    if (found != null) return found.rows.length > limit ? null : local(session, found.columns, names(query.analyzed()), new DriverRows(found.rows));
    Dataset folded = folded(session, frame, limit);
    if (folded != null) return folded;
    InternalRow[] rows = firstPlanned(session, query, limit + 1);
    if (rows.length > limit) return null;
    return local(session, query.optimizedPlan().output(), names(query.analyzed()), new DriverRows(rows));
  }

  /** The same of a frame over a small table; the rows of its data files are held for later ones. */
  public Dataset held(SparkSession session, Dataset frame, int limit) {
    LogicalPlan plan = frame.queryExecution().analyzed();
    HeldFiles files = HeldFiles.of(plan);
    if (files != null && files.hasMore(limit)) return null;
    InternalRow[] rows = files == null ? null : files.rows(session, limit);
    if (rows == null) return collected(session, frame, limit);
    return rows.length > limit ? null : local(session, plan.output(), names(plan), new DriverRows(rows));
  }

  /**
   * The rows that a small table's files (AddFile actions) `before` and `after` do not have in common, with their weights (w), of a frame that
   * names the columns. Null where they are too many, or the frame does more than to name columns.
   */
  public Dataset changed(SparkSession session, Dataset frame, List before, List after, int limit) {
    LogicalPlan plan = frame.queryExecution().analyzed();
    HeldFiles files = HeldFiles.of(plan);
    InternalRow[] rows = files == null ? null : files.changes(session, before, after, limit);
    if (rows == null || rows.length > limit) return null;
    List columns = new ArrayList();
    for (Object each : Sequences.list(plan.output())) columns.add(((Attribute) each).newInstance());
    columns.add(new AttributeReference(WEIGHT, DataTypes.LongType, false, Metadata.empty(), NamedExpression.newExprId(), NOTHING));
    return local(session, columns, new DriverRows(rows));
  }

  /** Keep plans over rows on the driver from now on, or none; says whether they were kept. */
  public boolean keepPlans(boolean keep) {
    return Prepared.keep(keep);
  }

  /** How many such plans were made, and how often one was run, since the process began. */
  public List plansKept() {
    long[] counts = Prepared.counts();
    return Arrays.asList(new Object[] {Long.valueOf(counts[0]), Long.valueOf(counts[1])});
  }

  /** How many bytes of rows are held. */
  public long heldBytes() {
    return HeldFiles.held();
  }

  /** Hold at most so many bytes of rows from now on; returns how many it were. */
  public long holdAtMost(long bytes) {
    return HeldFiles.atMost(bytes);
  }

  /** What was counted by name while a frame was run (Dataset.observe), below what is persisted as well. */
  public Map observed(Dataset frame) {
    Map found = new HashMap();
    scala.collection.Iterator each = CollectMetricsExec$.MODULE$.collect(frame.queryExecution().executedPlan()).iterator();
    while (each.hasNext()) {
      Tuple2 named = (Tuple2) each.next();
      Row counts = (Row) named._2();
      List numbers = new ArrayList();
      for (int i = 0; i < counts.length(); i++) numbers.add(Long.valueOf(counts.getLong(i)));
      found.put(named._1(), numbers);
    }
    return found;
  }

  /** The plan with its texts written so that none is taken for the id of a column, and no two are written alike: # , and % by their codes. */
  public LogicalPlan escaped(LogicalPlan plan) {
    return (LogicalPlan) plan.transformAllExpressionsWithSubqueries(new Escaping());
  }

  private static final class Escaping extends AbstractPartialFunction {
    public boolean isDefinedAt(Object each) {
      return each instanceof Literal && ((Literal) each).value() instanceof UTF8String;
    }

    public Object applyOrElse(Object each, Function1 otherwise) {
      if (!isDefinedAt(each)) return otherwise.apply(each);
      String text = ((Literal) each).value().toString();
      text = text.replace("%", "%25").replace("#", "%23").replace(",", "%2C").replace("\n", "%0A").replace("\r", "%0D");
      return new Literal(UTF8String.fromString(text), ((Literal) each).dataType());
    }
  }

  /** The values that a literal, a set of them, or a relation of local rows is made of, bit by bit. */
  public String bits(Object of) {
    List values = new ArrayList();
    if (of instanceof LocalRelation) {
      List columns = new ArrayList();
      for (Object each : Sequences.list(((LocalRelation) of).output())) {
        Attribute column = (Attribute) each;
        columns.add(new BoundReference(columns.size(), column.dataType(), column.nullable()));
      }
      for (Object row : Sequences.list(((LocalRelation) of).data())) values.add(bits(columns, (InternalRow) row));
    } else if (of instanceof InSet) {
      DataType type = ((InSet) of).child().dataType();
      scala.collection.Iterator each = ((InSet) of).hset().iterator();
      while (each.hasNext()) values.add(bits(Arrays.asList(new Object[] {new Literal(each.next(), type)}), InternalRow.empty()));
      Collections.sort(values);
    } else {
      values.add(bits(Arrays.asList(new Object[] {of}), InternalRow.empty()));
    }
    return values.toString();
  }

  private static String bits(List expressions, InternalRow row) {
    return InterpretedUnsafeProjection.createProjection(Sequences.seq(expressions)).apply(row).toString();
  }

  /** The optimised plan. What has to be run in the end is not begun by the optimiser, which would copy local rows one value at a time. */
  private static LogicalPlan optimized(SparkSession session, QueryExecution query) {
    if (foldable(query.analyzed())) return query.optimizedPlan();
    SQLConf conf = session.sessionState().conf();
    String before = (String) conf.getConfString(EXCLUDED, null);
    conf.setConfString(EXCLUDED, before == null ? TO_LOCAL : before + "," + TO_LOCAL);
    try {
      return query.optimizedPlan();
    } finally {
      if (before == null) conf.unsetConf(EXCLUDED);
      else conf.setConfString(EXCLUDED, before);
    }
  }

  private static boolean foldable(LogicalPlan plan) {
    while (plan instanceof Project || plan instanceof Filter || plan instanceof LocalLimit || plan instanceof GlobalLimit) {
      plan = (LogicalPlan) plan.children().head();
    }
    return plan instanceof LocalRelation;
  }

  /** At least the first rows of each partition, up to a limit, as Spark holds them. */
  public static InternalRow[] first(SparkSession session, QueryExecution query, int limit) {
    Prepared.Found found = Prepared.rows(session, query.analyzed(), limit);
    return found == null ? firstPlanned(session, query, limit) : found.rows;
  }

  private static InternalRow[] firstPlanned(SparkSession session, QueryExecution query, int limit) {
    SparkSession before = ActiveSession.swap(session);
    try {
      return OneTask.first(session, query, limit);
    } finally {
      ActiveSession.swap(before);
    }
  }

  /** The last tasks that ran in the driver (DriverTask). */
  public String driverTasks() {
    return DriverTask.recorded();
  }

  /** How many rows a local relation has. */
  public int size(Dataset local) {
    return ((LocalRelation) local.queryExecution().analyzed()).data().size();
  }

  /** Few rows as Spark holds them (dates as days, timestamps as microseconds), pickled as a list of lists. */
  public byte[] values(SparkSession session, Dataset frame) throws Exception {
    List rows = rows(session, frame);
    List output = Sequences.list(frame.queryExecution().analyzed().output());
    DataType[] types = new DataType[output.size()];
    for (int i = 0; i < types.length; i++) types[i] = ((Attribute) output.get(i)).dataType();
    List found = new ArrayList(rows.size());
    for (Object each : rows) {
      Object[] row = new Object[types.length];
      for (int i = 0; i < types.length; i++) row[i] = plain(((InternalRow) each).get(i, types[i]));
      found.add(row);
    }
    return new Pickler(false, false).dumps(found);
  }

  /** A frame's rows, which are few. */
  static List rows(SparkSession session, Dataset frame) {
    Seq named = LocalRows.named(frame.queryExecution().analyzed());
    if (named != null) return Sequences.list(named);
    Prepared.Found found = Prepared.rows(session, frame.queryExecution().analyzed(), Integer.MAX_VALUE);
    if (found != null) return Arrays.asList((Object[]) found.rows);
    LogicalPlan plan = optimized(session, frame.queryExecution());
    if (plan instanceof LocalRelation) return Sequences.list(((LocalRelation) plan).data());
    return Arrays.asList((Object[]) firstPlanned(session, frame.queryExecution(), Integer.MAX_VALUE));
  }

  private static Object plain(Object value) {
    if (value instanceof UTF8String) return value.toString();
    return value instanceof Decimal ? ((Decimal) value).toJavaBigDecimal() : value;
  }

  /** Rows in a plan's columns under such names. (For a Project over them the optimiser would copy each row.) */
  private static Dataset local(SparkSession session, Seq of, List names, Seq data) {
    List columns = new ArrayList();
    for (Object each : Sequences.list(of)) {
      columns.add(((Attribute) ((Attribute) each).newInstance()).withName((String) names.get(columns.size())));
    }
    return local(session, columns, data);
  }

  /** Rows on the driver as a frame, in columns that no other plan has. */
  static Dataset local(SparkSession session, List columns, Seq data) {
    return resolved(session, new LocalRelation(Sequences.seq(columns), data, false, Option.empty()));
  }

  private static List names(LogicalPlan plan) {
    List found = new ArrayList();
    for (Object each : Sequences.list(plan.output())) found.add(((Attribute) each).name());
    return found;
  }

  private static List weights(List plans) {
    List found = new ArrayList();
    for (Object plan : plans) {
      for (Object each : Sequences.list(((LogicalPlan) plan).output())) {
        if (((Attribute) each).name().equals(WEIGHT)) found.add(each);
      }
    }
    return found;
  }

  private static Alias alias(Expression expression, String name, ExprId id, Map marks) {
    return new Alias(expression, name, id, NOTHING, Option.apply(marks.get(id.id())), SESSION);
  }

  static Alias alias(Expression expression, String name) {
    return new Alias(expression, name, NamedExpression.newExprId(), NOTHING, Option.empty(), SESSION);
  }

  private static List both(Seq own, List more) {
    List found = new ArrayList(Sequences.list(own));
    found.addAll(more);
    return found;
  }
}
