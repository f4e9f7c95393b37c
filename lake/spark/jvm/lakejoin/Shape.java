package lakejoin;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.NamedLambdaVariable;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.catalyst.trees.TreePattern$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.types.DataType;
import scala.Option;
import scala.Product;
import scala.Tuple2;
import scala.collection.immutable.Seq;

/**
 * What an analysed plan is without the rows of its leaves, the names of its columns, and their ids, which are new each time. Two plans of equal
 * keys give the same rows from the same leaves, in the same session with the same settings.
 */
final class Shape {
  private static final String[] SETTINGS = {"spark.sql."};

  final List key = new ArrayList(); // classes and values, in the order of the plan
  final List relations = new ArrayList(); // LocalRelation, in the order of the plan

  private final Map ids = new HashMap(); // ExprId -> how many came before it
  private boolean known = true;

  private Shape() {}

  /** The shape of a plan over rows on the driver alone; null for another, and where running it twice may give other rows, or needs other plans. */
  static Shape of(SparkSession session, LogicalPlan plan) {
    if (plan.isStreaming() || plan.containsPattern(TreePattern$.MODULE$.CURRENT_LIKE())) return null;
    Shape shape = new Shape();
    shape.key.add(session);
    shape.key.add(ActiveSession.settings(session, SETTINGS, new String[0]));
    shape.add(plan);
    return shape.known && !shape.relations.isEmpty() ? shape : null;
  }

  private void add(Object part) {
    if (!known) return;
    if (part instanceof LogicalPlan) add((LogicalPlan) part);
    else if (part instanceof Expression) add((Expression) part);
    else if (part instanceof ExprId) addId((ExprId) part);
    else if (part instanceof DataType) key.add(part); // a StructType is a sequence, too
    else if (part instanceof scala.collection.immutable.Seq) addAll((Seq) part);
    else if (part instanceof Option || part instanceof Tuple2) addParts((Product) part);
    else if (part != null && part.getClass().isArray()) known = false;
    else key.add(part); // by its own equality: most often a value, else this very object
  }

  private void add(LogicalPlan plan) {
    if (plan instanceof LocalRelation) {
      relations.add(plan);
      key.add(LocalRelation.class);
      addAll(plan.output());
    } else if (plan instanceof SubqueryAlias || plan instanceof View) {
      add(plan.children().head()); // names
    } else if (plan.children().isEmpty() && !(plan instanceof OneRowRelation)) {
      known = false;
    } else {
      addParts(plan);
    }
  }

  private void add(Expression expression) {
    if (!expression.deterministic() || expression instanceof PlanExpression) {
      known = false;
    } else if (expression instanceof Attribute || expression instanceof NamedLambdaVariable) {
      key.add(expression.getClass());
      addId(((NamedExpression) expression).exprId());
      key.add(expression.dataType());
      key.add(Boolean.valueOf(expression.nullable()));
      key.add(((NamedExpression) expression).metadata());
    } else if (expression instanceof Alias) {
      key.add(Alias.class);
      addId(((Alias) expression).exprId());
      key.add(((Alias) expression).explicitMetadata());
      add(((Alias) expression).child());
    } else {
      addParts(expression);
    }
  }

  private void addParts(Product of) {
    key.add(of.getClass());
    for (int i = 0; i < of.productArity(); i++) add(of.productElement(i));
  }

  private void addAll(Seq parts) {
    key.add(Integer.valueOf(parts.length()));
    for (Object part : Sequences.list(parts)) add(part);
  }

  private void addId(ExprId id) {
    Object before = ids.get(id);
    if (before == null) ids.put(id, Integer.valueOf(ids.size()));
    key.add(ids.get(id));
  }
}
