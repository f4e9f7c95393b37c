package lakejoin;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.AliasIdentifier;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedWith;
import scala.Function1;
import scala.Product;
import scala.Tuple2;
import scala.Tuple3;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractPartialFunction;

/** Relations with a schema in their names (lake/spark/queries.py). */
public final class SchemaNames {

  /** The parsed plan with each relation of a name such as silver.accounts read from the temporary view of that whole name; `names`: of
   * these, between commas. */
  public LogicalPlan wholeNames(LogicalPlan parsed, String names) {
    return placed(parsed, Arrays.asList(names.split(",")));
  }

  private LogicalPlan placed(LogicalPlan parsed, List names) {
    return (LogicalPlan) parsed.transformDownWithSubqueries(new Whole(names));
  }

  private final class Whole extends AbstractPartialFunction {
    private final List names;

    Whole(List names) {
      this.names = names;
    }

    private String named(UnresolvedRelation relation) {
      List parts = Sequences.list(relation.multipartIdentifier());
      StringBuilder whole = new StringBuilder();
      for (int i = 0; i < parts.size(); i++) whole.append(i == 0 ? "" : ".").append((String) parts.get(i));
      for (int i = 0; parts.size() > 1 && i < names.size(); i++) {
        if (whole.toString().equalsIgnoreCase((String) names.get(i))) return (String) names.get(i);
      }
      return null;
    }

    public boolean isDefinedAt(Object each) {
      return each instanceof UnresolvedWith || each instanceof UnresolvedRelation && named((UnresolvedRelation) each) != null;
    }

    public Object applyOrElse(Object each, Function1 otherwise) {
      if (!isDefinedAt(each)) return otherwise.apply(each);
      if (each instanceof UnresolvedWith) return inside((UnresolvedWith) each);
      UnresolvedRelation relation = (UnresolvedRelation) each;
      List parts = Sequences.list(relation.multipartIdentifier());
      List whole = new ArrayList();
      whole.add(named(relation));
      Seq schema = Sequences.seq(new ArrayList(parts.subList(0, parts.size() - 1)));
      LogicalPlan source = new UnresolvedRelation(Sequences.seq(whole), relation.options(), relation.isStreaming());
      return new SubqueryAlias(new AliasIdentifier((String) parts.get(parts.size() - 1), schema), source);
    }

    /** Common table expressions are no children of their plan. */
    private UnresolvedWith inside(UnresolvedWith with) {
      List relations = Sequences.list(with.cteRelations());
      List found = new ArrayList();
      for (int i = 0; i < relations.size(); i++) {
        Product each = (Product) relations.get(i); // name and plan; since Spark 4.1 also how deep a recursion may go
        LogicalPlan plan = placed((LogicalPlan) each.productElement(1), names);
        Object name = each.productElement(0);
        found.add(each.productArity() < 3 ? (Object) new Tuple2(name, plan) : new Tuple3(name, plan, each.productElement(2)));
      }
      return new UnresolvedWith(with.child(), Sequences.seq(found), with.allowRecursion());
    }
  }
}
