package lakejoin;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import net.razorvine.pickle.Unpickler;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAlias;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BinaryComparison;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.GreaterThan;
import org.apache.spark.sql.catalyst.expressions.LessThan;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.UnaryMinus;
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser$;
import org.apache.spark.sql.catalyst.plans.Inner$;
import org.apache.spark.sql.catalyst.plans.LeftSemi$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.BROADCAST$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.HintInfo;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.JoinHint;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.ResolvedHint;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Seq;

/** Operators on frames, several in one call and analysed once (lake/spark/steps.py, zset.py). Weights are named w. */
public final class Steps {
  private static final String WEIGHT = "w";

  /** A frame after some operators: pickled lists of their kinds (select, where, group) and their expressions as SQL. */
  public Dataset over(SparkSession session, Dataset frame, byte[] steps) throws Exception {
    SparkSession before = ActiveSession.swap(session); // its settings are the parser's
    try {
      LogicalPlan plan = frame.queryExecution().analyzed();
      for (Object step : (List) new Unpickler().loads(steps)) plan = over((List) step, plan);
      return Dataset.ofRows(session, plan);
    } finally {
      ActiveSession.swap(before);
    }
  }

  private static LogicalPlan over(List step, LogicalPlan plan) throws Exception {
    String kind = (String) step.get(0);
    if (kind.equals("where")) {
      Expression condition = parsed((String) step.get(1)), known = plan.analyzed() ? comparison(condition, plan) : null;
      return known == null ? new Filter(condition, plan) : analyzed(new Filter(known, plan));
    }
    List named = named((List) step.get(1));
    if (kind.equals("select")) {
      List known = plan.analyzed() ? columns(named, plan) : null;
      return known == null ? new Project(Sequences.seq(named), plan) : analyzed(new Project(Sequences.seq(known), plan));
    }
    List keys = new ArrayList();
    for (Object each : named) keys.add(each instanceof Alias ? ((Alias) each).child() : each);
    named.addAll(named((List) step.get(2)));
    return new Aggregate(Sequences.seq(keys), Sequences.seq(named), plan, Option.empty());
  }

  private static LogicalPlan analyzed(LogicalPlan plan) {
    plan.setAnalyzed();
    return plan;
  }

  /** Names of a plan's columns, or of fields of these, perhaps under other names, as the analyser would have them. Null where there is more. */
  private static List columns(List named, LogicalPlan plan) {
    List found = new ArrayList();
    for (Object each : named) {
      Expression column = column(each instanceof Alias ? ((Alias) each).child() : (Expression) each, plan);
      if (column == null || (column instanceof GetStructField && !(each instanceof Alias))) return null;
      found.add(each instanceof Alias ? ((Alias) each).withNewChildren(Sequences.seq(Collections.singletonList(column))) : column);
    }
    return found;
  }

  /** A column of long integers compared with a number, as the analyser would have it. Null for another condition. */
  private static Expression comparison(Expression condition, LogicalPlan plan) {
    Expression inner = condition instanceof Not ? ((Not) condition).child() : condition;
    if (!(inner instanceof GreaterThan || inner instanceof LessThan || inner instanceof EqualTo)) return null;
    Expression right = (Expression) ((BinaryComparison) inner).right(), column = column((Expression) ((BinaryComparison) inner).left(), plan);
    if (column == null || !(column.dataType() instanceof LongType)) return null;
    if (!(right instanceof Literal) || !(right.dataType() instanceof IntegerType) || ((Literal) right).value() == null) return null;
    Expression value = new Literal(Long.valueOf(((Integer) ((Literal) right).value()).longValue()), DataTypes.LongType);
    Expression made = (Expression) inner.withNewChildren(Sequences.seq(Arrays.asList(new Object[] {column, value})));
    return condition instanceof Not ? new Not(made) : made;
  }

  /** The column of a plan, or the field of one, that a name stands for. Null for another expression, and where only the analyser can tell. */
  private static Expression column(Expression named, LogicalPlan plan) {
    if (!(named instanceof UnresolvedAttribute)) return null;
    List parts = Sequences.list(((UnresolvedAttribute) named).nameParts());
    Attribute found = null;
    for (Object each : Sequences.list(plan.output())) {
      Attribute column = (Attribute) each;
      if (parts.size() > 1 && !column.qualifier().isEmpty()) return null; // the first part may be a table
      if (!column.name().equalsIgnoreCase((String) parts.get(0))) continue;
      if (found != null) return null;
      found = column;
    }
    if (found == null || !found.name().equals(parts.get(0))) return null;
    return parts.size() == 1 ? found : parts.size() == 2 ? field(found, (String) parts.get(1)) : null;
  }

  private static Expression field(Attribute of, String name) {
    if (!(of.dataType() instanceof StructType)) return null;
    StructField[] fields = ((StructType) of.dataType()).fields();
    int place = -1;
    for (int i = 0; i < fields.length; i++) {
      if (!fields[i].name().equalsIgnoreCase(name)) continue;
      if (place >= 0 || !fields[i].name().equals(name)) return null;
      place = i;
    }
    return place < 0 ? null : new GetStructField(of, place, Option.apply(name));
  }

  /** An expression. The session's parser would replace ${...} in the names of columns, as in the texts of users. */
  private static Expression parsed(String text) throws Exception {
    return CatalystSqlParser$.MODULE$.parseExpression(text);
  }

  private static List named(List texts) throws Exception {
    List found = new ArrayList();
    for (Object text : texts) {
      Expression each = parsed((String) text);
      found.add(each instanceof NamedExpression ? each : new UnresolvedAlias(each, Option.empty()));
    }
    return found;
  }

  /**
   * Weighted rows of frames of the same columns (in any order), added up: of each frame times 1, or times -1 where `signs` has a minus at its
   * place. Rows without a weight count once.
   */
  public Dataset added(SparkSession session, List frames, String signs) {
    List sides = new ArrayList();
    Seq first = ((Dataset) frames.get(0)).queryExecution().analyzed().output();
    for (int i = 0; i < frames.size(); i++) {
      sides.add(weighted(((Dataset) frames.get(i)).queryExecution().analyzed(), first, signs.charAt(i) == '-'));
    }
    LogicalPlan plan = sides.size() == 1 ? (LogicalPlan) sides.get(0) : new Union(Sequences.seq(sides), false, false);
    return sameTypes(sides) && Plans.apart(sides) ? Plans.resolved(session, plan) : Dataset.ofRows(session, plan);
  }

  /** Whether plans have columns of the same types, so that a union of them has no need of casts. */
  private static boolean sameTypes(List plans) {
    List first = Sequences.list(((LogicalPlan) plans.get(0)).output());
    for (Object plan : plans) {
      List columns = Sequences.list(((LogicalPlan) plan).output());
      for (int i = 0; i < first.size(); i++) {
        if (!((Attribute) columns.get(i)).dataType().equals(((Attribute) first.get(i)).dataType())) return false;
      }
    }
    return true;
  }

  private static LogicalPlan weighted(LogicalPlan plan, Seq order, boolean negative) {
    Map columns = new HashMap();
    for (Object each : Sequences.list(plan.output())) columns.put(((Attribute) each).name(), each);
    Expression weight = (Expression) columns.remove(WEIGHT);
    if (weight == null) weight = new Literal(Long.valueOf(negative ? -1L : 1L), DataTypes.LongType);
    else if (negative) weight = new UnaryMinus(weight, false);
    List made = new ArrayList();
    for (Object each : Sequences.list(order)) {
      String name = ((Attribute) each).name();
      if (name.equals(WEIGHT)) continue;
      if (!columns.containsKey(name)) throw new IllegalArgumentException("no column " + name);
      made.add(Plans.alias((Expression) columns.remove(name), name));
    }
    if (!columns.isEmpty()) throw new IllegalArgumentException("other columns: " + columns.keySet());
    made.add(Plans.alias(weight, WEIGHT));
    return new Project(Sequences.seq(made), plan);
  }

  /**
   * The rows of a frame of which some expressions are among keys, the columns of another frame: a left semi join. `marks`: as of Plans.bound;
   * `safe`: for each key whether NULL is one like any other (1), or is not there (0); `few`: the keys are broadcast.
   */
  public Dataset among(SparkSession session, Dataset frame, Map marks, List expressions, Dataset keys, String safe, boolean few) {
    LogicalPlan rows = new Plans().bound(frame, marks), wanted = keys.queryExecution().analyzed();
    List made = new ArrayList(), columns = new ArrayList();
    for (Object each : Sequences.list(wanted.output())) made.add(Plans.alias((Expression) each, ((Attribute) each).name()));
    wanted = new Project(Sequences.seq(made), wanted);
    Expression condition = new Literal(Boolean.TRUE, DataTypes.BooleanType);
    for (int i = 0; i < expressions.size(); i++) {
      Expression own = (Expression) expressions.get(i), key = ((NamedExpression) made.get(i)).toAttribute();
      condition = new And(condition, safe.charAt(i) == '1' ? new EqualNullSafe(own, key) : new EqualTo(own, key));
    }
    if (few) wanted = broadcast(wanted);
    LogicalPlan joined = new Join(rows, wanted, LeftSemi$.MODULE$, Option.apply(condition), JoinHint.NONE());
    for (Object each : Sequences.list(rows.output())) columns.add(Plans.alias((Attribute) each, ((Attribute) each).name()));
    return Dataset.ofRows(session, new Project(Sequences.seq(columns), joined));
  }

  /** The inner join of two frames, by a condition as SQL. `few`: the right rows are broadcast. */
  public Dataset joined(SparkSession session, Dataset left, Dataset right, String condition, boolean few) throws Exception {
    LogicalPlan one = left.queryExecution().analyzed(), other = right.queryExecution().analyzed();
    Option on = Option.apply(parsed(condition));
    return Dataset.ofRows(session, new Join(one, few ? broadcast(other) : other, Inner$.MODULE$, on, JoinHint.NONE()));
  }

  private static LogicalPlan broadcast(LogicalPlan plan) {
    return new ResolvedHint(plan, new HintInfo(Option.apply(BROADCAST$.MODULE$)));
  }

  /** A table's rows with the file of each and its position there, under these names. */
  public Dataset withPositions(Dataset rows, String file, String position) {
    org.apache.spark.sql.Column metadata = rows.metadataColumn("_metadata");
    List columns = new ArrayList();
    columns.add(rows.col("*"));
    columns.add(metadata.getField("file_path").as(file));
    columns.add(metadata.getField("row_index").as(position));
    return rows.select(Sequences.seq(columns));
  }
}
