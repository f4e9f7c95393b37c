package lakejoin;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.AesEncrypt;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedLambdaVariable;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.RuntimeReplaceable;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.catalyst.plans.logical.WithCTE;
import org.apache.spark.sql.catalyst.trees.TreePattern$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StringType;
import scala.Option;
import scala.Product;
import scala.Tuple2;
import scala.collection.immutable.Seq;

/**
 * What an analysed plan is without the rows of its leaves, the names of its columns, and their ids, which are new each time. Two plans of equal
 * keys give the same rows from the same leaves.
 */
final class Shape {
  private static final String[] SETTINGS = {"spark.sql."};

  /** A plan's session, the session's settings, and the classes and values of the plan in their order. */
  static final class Key {
    private final SparkSession session;
    private Map settings;
    private final List parts = new ArrayList();
    private int hash;

    private Key(SparkSession session) {
      this.session = session;
    }

    private Map now() {
      return ActiveSession.settings(session, SETTINGS, new String[0]);
    }

    /** Whether the session has still the settings that it had. */
    boolean holds() {
      return settings.equals(now());
    }

    public int hashCode() {
      if (hash == 0) hash = 31 * (31 * session.hashCode() + settings.hashCode()) + parts.hashCode();
      return hash;
    }

    public boolean equals(Object other) {
      return other instanceof Key && same((Key) other);
    }

    private boolean same(Key other) {
      return session == other.session && hashCode() == other.hashCode() && parts.equals(other.parts) && settings.equals(other.settings);
    }
  }

  final Key key;
  final List relations = new ArrayList(); // LocalRelation, in the order of the plan

  private final Map ids = new HashMap(); // ExprId -> how many came before it
  private boolean known = true;

  private Shape(SparkSession session) {
    key = new Key(session);
  }

  /** The shape of a plan over rows on the driver alone; null for another, for these rows alone, and where another run may give other rows. */
  static Shape of(SparkSession session, LogicalPlan plan) {
    if (plan instanceof LocalRelation || plan.isStreaming() || plan.containsPattern(TreePattern$.MODULE$.CURRENT_LIKE())) return null;
    Shape shape = new Shape(session);
    shape.add(plan);
    if (!shape.known || shape.relations.isEmpty()) return null;
    shape.key.settings = shape.key.now(); // not before: most plans read files, and are none of these
    return shape;
  }

  private void add(Object part) {
    if (!known) return;
    if (part instanceof LogicalPlan) add((LogicalPlan) part);
    else if (part instanceof Expression) add((Expression) part);
    else if (part instanceof ExprId) addId((ExprId) part);
    else if (part instanceof DataType) key.parts.add(part); // a StructType is a sequence, too
    else if (part instanceof scala.collection.immutable.Seq) addAll((Seq) part);
    else if (part instanceof Option || part instanceof Tuple2) addParts((Product) part);
    else if (part != null && part.getClass().isArray()) known = false;
    else key.parts.add(part); // by its own equality: most often a value, else this very object
  }

  private void add(LogicalPlan plan) {
    if (plan instanceof LocalRelation) {
      relations.add(plan);
      key.parts.add(LocalRelation.class);
      addAll(plan.output());
    } else if (plan instanceof SubqueryAlias || plan instanceof View) {
      add(plan.children().head()); // names
    } else if (plan instanceof WithCTE || (plan.children().isEmpty() && !(plan instanceof OneRowRelation))) {
      known = false;
    } else {
      addParts(plan);
    }
  }

  private void add(Expression expression) {
    if (differsEachTime(expression)) {
      known = false;
    } else if (expression instanceof Attribute) {
      Attribute column = (Attribute) expression;
      key.parts.add(column.getClass());
      addId(column.exprId());
      key.parts.add(column.dataType());
      key.parts.add(Boolean.valueOf(column.nullable()));
      key.parts.add(column.metadata());
    } else if (expression instanceof Alias) {
      Alias alias = (Alias) expression;
      key.parts.add(Alias.class);
      addId(alias.exprId());
      key.parts.add(alias.explicitMetadata());
      key.parts.add(alias.nonInheritableMetadataKeys());
      add(alias.child());
    } else if (expression instanceof RuntimeReplaceable) {
      key.parts.add(expression.getClass());
      add(((RuntimeReplaceable) expression).replacement());
    } else {
      addParts(expression);
    }
  }

  /**
   * Whether an expression may have another value when it is run again: by itself, by the day on which it is optimised (`'today'` as a date), or
   * because it is more than a function of its input.
   */
  private static boolean differsEachTime(Expression expression) {
    if (!expression.deterministic() || expression instanceof PlanExpression || expression instanceof AesEncrypt) return true;
    if (expression instanceof NamedLambdaVariable) return true; // it holds the element: two plans of one expression would share it
    if (expression.getClass().getName().startsWith("org.apache.spark.sql.hive")) return true;
    return expression instanceof Cast && ((Cast) expression).child().foldable() && ((Cast) expression).child().dataType() instanceof StringType;
  }

  private void addParts(Product of) {
    key.parts.add(of.getClass());
    for (int i = 0; i < of.productArity(); i++) add(of.productElement(i));
  }

  private void addAll(Seq parts) {
    key.parts.add(Integer.valueOf(parts.length()));
    for (Object part : Sequences.list(parts)) add(part);
  }

  private void addId(ExprId id) {
    if (!ids.containsKey(id)) ids.put(id, Integer.valueOf(ids.size()));
    key.parts.add(ids.get(id));
  }
}
