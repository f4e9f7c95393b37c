package lakejoin;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import net.razorvine.pickle.Unpickler;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAlias;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
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
    if (kind.equals("where")) return new Filter(parsed((String) step.get(1)), plan);
    List named = named((List) step.get(1));
    if (kind.equals("select")) return new Project(Sequences.seq(named), plan);
    List keys = new ArrayList();
    for (Object each : named) keys.add(each instanceof Alias ? ((Alias) each).child() : each);
    named.addAll(named((List) step.get(2)));
    return new Aggregate(Sequences.seq(keys), Sequences.seq(named), plan, Option.empty());
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
