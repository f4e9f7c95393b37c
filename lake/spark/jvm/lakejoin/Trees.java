package lakejoin;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import net.razorvine.pickle.Pickler;
import org.apache.spark.sql.catalyst.analysis.RelationTimeTravel;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedWith;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import py4j.Gateway;
import py4j.GatewayServer;
import scala.Product;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/**
 * What is asked of plans and expressions (lake/catalyst), many answers in one call: a call to the JVM costs more than most answers. Answers
 * are pickled; objects in them are (their name in the gateway, the simple name of their class).
 */
public final class Trees {
  private static final List INTEGERS = Arrays.asList(new Object[] {"byte", "short", "integer", "long"});
  private Gateway gateway;

  /** The same for the gateway of a server. */
  public Trees of(GatewayServer server) {
    gateway = server.getGateway();
    return this;
  }

  /** The items of a sequence; null where one of them is a value, such as a text, or a Java collection. */
  public byte[] items(Object sequence) throws IOException {
    if (!(sequence instanceof Seq)) return null;
    List found = new ArrayList();
    for (Object each : Sequences.list((Seq) sequence)) {
      if (!isObject(each)) return null;
      found.add(each);
    }
    for (int i = 0; i < found.size(); i++) found.set(i, named(found.get(i)));
    return pickled(found);
  }

  /** (id, name) of each attribute. */
  public byte[] attributes(Seq attributes) throws IOException {
    List found = new ArrayList();
    for (Object each : Sequences.list(attributes)) found.add(new Object[] {id((Attribute) each), ((Attribute) each).name()});
    return pickled(found);
  }

  /** (id, object) of what each named expression is a name for. */
  public byte[] definitions(Seq expressions) throws IOException {
    List found = new ArrayList();
    for (Object each : Sequences.list(expressions)) {
      Object of = each instanceof Alias ? ((Alias) each).child() : each;
      found.add(new Object[] {id((NamedExpression) each), named(of)});
    }
    return pickled(found);
  }

  /** The ids of the attributes that an expression reads; that of the one that it is, but for casts that widen it; whether it has none. */
  public byte[] expression(Expression expression) throws IOException {
    Expression inner = expression;
    while (inner instanceof Cast && widens((Cast) inner)) inner = ((Cast) inner).child();
    Object attribute = inner instanceof AttributeReference ? id((NamedExpression) inner) : null;
    return pickled(new Object[] {references(expression.references().iterator()), attribute, Boolean.valueOf(inner == expression)});
  }

  /** The ids of the attributes that a plan's own expressions read. */
  public byte[] references(QueryPlan plan) throws IOException {
    return pickled(references(plan.references().iterator()));
  }

  /** (expression, plan) of each subquery in a sequence of expressions. */
  public byte[] subqueries(Seq expressions) throws IOException {
    List found = new ArrayList();
    for (Object each : Sequences.list(expressions)) subqueries((Expression) each, found);
    return pickled(found);
  }

  /**
   * Every plan node and expression in a plan or an expression, or in each of a sequence of these, with those in their subqueries or
   * without; without some expressions and what they contain (null: none).
   */
  public Census census(Object of, boolean subqueries, List without) {
    Set out = Collections.newSetFromMap(new IdentityHashMap());
    if (without != null) out.addAll(without);
    List found = new ArrayList();
    List rest = new ArrayList();
    if (of instanceof TreeNode) rest.add(of);
    else rest.addAll(Sequences.list((Seq) of));
    if (!(of instanceof TreeNode)) Collections.reverse(rest);
    while (!rest.isEmpty()) {
      TreeNode each = (TreeNode) rest.remove(rest.size() - 1);
      if (out.contains(each)) continue;
      found.add(each);
      rest.addAll(Sequences.list(each.children()));
      if (each instanceof QueryPlan) {
        rest.addAll(Sequences.list(((QueryPlan) each).expressions()));
        if (each instanceof UnresolvedWith) rest.addAll(Sequences.list(each.innerChildren()));
      } else if (subqueries && each instanceof PlanExpression) {
        rest.add(((PlanExpression) each).plan());
      }
    }
    return new Census(found);
  }

  /** The names of relations in a parsed plan, in their parts, without those that stand for a CTE there. */
  public byte[] relationNames(TreeNode plan) throws IOException {
    List found = new ArrayList();
    relationNames(plan, new HashSet(), found);
    return pickled(found);
  }

  private static void relationNames(TreeNode each, Set known, List found) {
    if (each instanceof UnresolvedRelation) {
      List parts = Sequences.list(((UnresolvedRelation) each).multipartIdentifier());
      if (parts.size() > 1 || !known.contains(lower(parts.get(0)))) found.add(new ArrayList(parts));
      return;
    }
    Set ctes = known;
    if (each instanceof UnresolvedWith) {
      ctes = new HashSet(known);
      for (Object cte : Sequences.list(((UnresolvedWith) each).cteRelations())) {
        relationNames((TreeNode) ((Product) cte).productElement(1), ctes, found); // a CTE is not known in itself, but after itself
        ctes.add(lower(((Product) cte).productElement(0)));
      }
    }
    List below = new ArrayList();
    if (each instanceof RelationTimeTravel) below.add(((RelationTimeTravel) each).relation());
    else below.addAll(Sequences.list(each.children()));
    if (each instanceof QueryPlan) below.addAll(Sequences.list(((QueryPlan) each).expressions()));
    else if (each instanceof PlanExpression) below.add(((PlanExpression) each).plan());
    for (Object inner : below) relationNames((TreeNode) inner, ctes, found);
  }

  private static String lower(Object name) {
    return ((String) name).toLowerCase(Locale.ROOT);
  }

  /** What a census found. */
  public static final class Census {
    private final List found;

    Census(List found) {
      this.found = found;
    }

    /** (simple name of its class, whether it is an expression, whether that holds a subquery) of each. */
    public byte[] kinds() throws IOException {
      List kinds = new ArrayList();
      for (Object each : found) {
        kinds.add(new Object[] {simpleName(each), Boolean.valueOf(each instanceof Expression), Boolean.valueOf(each instanceof PlanExpression)});
      }
      return pickled(kinds);
    }

    public Object get(int place) {
      return found.get(place);
    }
  }

  private void subqueries(Expression expression, List found) {
    if (expression instanceof PlanExpression) {
      found.add(new Object[] {named(expression), named(((PlanExpression) expression).plan())});
    }
    for (Object child : Sequences.list(expression.children())) subqueries((Expression) child, found);
  }

  /** Whether a cast keeps values and their order: from a whole number to a wider one or to a decimal that holds it. */
  private static boolean widens(Cast cast) {
    DataType narrow = cast.child().dataType();
    DataType wide = cast.dataType();
    boolean whole = INTEGERS.contains(wide.typeName()) || wide instanceof DecimalType;
    return INTEGERS.contains(narrow.typeName()) && whole && Cast.canUpCast(narrow, wide);
  }

  private static List references(Iterator attributes) {
    List found = new ArrayList();
    while (attributes.hasNext()) found.add(id((NamedExpression) attributes.next()));
    return found;
  }

  private static Long id(NamedExpression named) {
    return Long.valueOf(named.exprId().id());
  }

  private static boolean isObject(Object each) {
    boolean value = each == null || each instanceof String || each instanceof Number || each instanceof Boolean || each instanceof Character;
    boolean collection = each instanceof Iterable || each instanceof Map || each instanceof java.util.Iterator;
    return !value && !collection && !each.getClass().isArray();
  }

  private Object[] named(Object each) {
    return new Object[] {gateway.putNewObject(each), simpleName(each)};
  }

  private static String simpleName(Object each) {
    return each.getClass().getSimpleName();
  }

  private static byte[] pickled(Object answer) throws IOException {
    return new Pickler(false, false).dumps(answer);
  }
}
