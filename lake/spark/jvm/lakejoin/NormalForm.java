package lakejoin;

import java.util.ArrayList;
import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases$;
import org.apache.spark.sql.catalyst.expressions.Exists;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.optimizer.CollapseProject$;
import org.apache.spark.sql.catalyst.optimizer.ColumnPruning$;
import org.apache.spark.sql.catalyst.optimizer.InlineCTE;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import scala.Function1;
import scala.runtime.AbstractPartialFunction;

/**
 * Analysed plans without what can't change their rows (lake/catalyst/normal_form.py): names of subqueries, CTEs, columns that nothing
 * reads. Only rules of Spark that go through a plan in its own order are used: what depends on hashes differs between processes.
 */
public final class NormalForm {
  private static final int MOST_ROUNDS = 100;

  /** The analysed plan with the columns pruned that nothing reads, also in its subqueries. */
  public LogicalPlan pruned(LogicalPlan analysed) {
    return prunedAll(new InlineCTE(true, false).apply(analysed));
  }

  private static LogicalPlan prunedAll(LogicalPlan plan) {
    LogicalPlan before = EliminateSubqueryAliases$.MODULE$.apply(plan);
    for (int i = 0; i < MOST_ROUNDS; i++) {
      LogicalPlan after = ColumnPruning$.MODULE$.apply(CollapseProject$.MODULE$.apply(before));
      if (after.fastEquals(before)) break;
      before = after;
    }
    return (LogicalPlan) before.transformAllExpressions(new Subqueries());
  }

  private static final class Subqueries extends AbstractPartialFunction {
    public boolean isDefinedAt(Object each) {
      return each instanceof SubqueryExpression;
    }

    public Object applyOrElse(Object each, Function1 otherwise) {
      if (!isDefinedAt(each)) return otherwise.apply(each);
      SubqueryExpression subquery = (SubqueryExpression) each;
      LogicalPlan plan = (LogicalPlan) subquery.plan();
      if (subquery instanceof Exists) plan = new Project(Sequences.seq(new ArrayList()), plan); // its columns do not matter
      return subquery.withNewPlan(prunedAll(plan));
    }
  }
}
