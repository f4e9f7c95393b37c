package lakejoin;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.plans.InnerLike;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.CoalesceExec;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.LocalLimitExec;
import org.apache.spark.sql.execution.LocalTableScanExec;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.RDDScanExec;
import org.apache.spark.sql.execution.SQLExecution$;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec;
import org.apache.spark.sql.execution.joins.BroadcastNestedLoopJoinExec;
import org.apache.spark.sql.execution.joins.CartesianProductExec;
import org.apache.spark.sql.execution.joins.ShuffledHashJoinExec;
import org.apache.spark.sql.internal.SQLConf;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction0;

/**
 * Runs plans that read little in one task: for few rows, the stages of exchanges and the jobs of broadcasts
 * take longer than the work. Spark sees one partition everywhere, so that it plans no exchange, and hash joins build their side where they run.
 */
final class OneTask {
  static final long MOST_BYTES = 8L << 20;
  static final long OPENING = 128L << 10; // what opening a file costs, in bytes

  private OneTask() {}

  /**
   * At least the first rows of each partition, up to a limit, as Spark holds them. The limit is put onto the physical plan: one that Spark
   * plans has a counter with a number of its own in the code that is generated for it, so that no refresh could use the code of the one
   * before. What reads little runs in this thread; where that fails, a job runs it again, and its error is the one that is raised.
   */
  static InternalRow[] first(SparkSession session, QueryExecution query, int limit) {
    SparkPlan plan = query.sparkPlan();
    if (cost(plan) > MOST_BYTES) return inJob(session, query.executedPlan(), limit);
    InternalRow[] rows = inDriver(session, plan, limit);
    return rows != null ? rows : inJob(session, prepared(session, plan), limit);
  }

  /** Functions look up settings where they run: both ways they find those of the session. */
  private static InternalRow[] inDriver(final SparkSession session, final SparkPlan plan, final int limit) {
    SQLConf conf = session.sessionState().conf();
    return (InternalRow[])
        SQLConf.withExistingConf(
            conf,
            new AbstractFunction0() {
              public Object apply() {
                SparkPlan one = prepared(session, plan);
                return DriverTask.runs(one) ? DriverTask.rows(one, limit) : null;
              }
            });
  }

  private static InternalRow[] inJob(SparkSession session, final SparkPlan plan, final int limit) {
    return (InternalRow[])
        SQLExecution$.MODULE$.withSQLConfPropagated(
            session,
            new AbstractFunction0() {
              public Object apply() {
                return new LocalLimitExec(limit, plan).executeCollect();
              }
            });
  }

  /** A physical plan over one partition, ready to be run. */
  static SparkPlan prepared(SparkSession session, SparkPlan plan) {
    return QueryExecution.prepareExecutedPlan(session, single((SparkPlan) plan.clone()));
  }

  private static long cost(SparkPlan plan) {
    if (plan instanceof LocalTableScanExec) return 0;
    if (plan instanceof FileSourceScanExec) return cost(((FileSourceScanExec) plan).relation().location());
    if (plan instanceof RDDScanExec) return ((RDDScanExec) plan).rdd().getNumPartitions() <= 1 ? 0 : Long.MAX_VALUE;
    List children = Sequences.list(plan.children());
    if (children.isEmpty()) return Long.MAX_VALUE;
    long found = 0;
    for (Object child : children) {
      long one = cost((SparkPlan) child);
      if (one > MOST_BYTES) return one;
      found += one;
    }
    return found;
  }

  private static long cost(FileIndex files) {
    int number = files instanceof Files.Chosen ? ((Files.Chosen) files).number() : 1;
    return files.sizeInBytes() + number * OPENING;
  }

  private static SparkPlan single(SparkPlan plan) {
    List children = new ArrayList();
    for (Object child : Sequences.list(plan.children())) children.add(single((SparkPlan) child));
    SparkPlan same = children.isEmpty() ? plan : (SparkPlan) plan.withNewChildren(Sequences.seq(children));
    if (same instanceof BroadcastHashJoinExec && !((BroadcastHashJoinExec) same).isNullAwareAntiJoin()) {
      BroadcastHashJoinExec join = (BroadcastHashJoinExec) same;
      return new ShuffledHashJoinExec(
          join.leftKeys(), join.rightKeys(), join.joinType(), join.buildSide(), join.condition(), join.left(), join.right(), false);
    }
    if (same instanceof BroadcastNestedLoopJoinExec && ((BroadcastNestedLoopJoinExec) same).joinType() instanceof InnerLike) {
      BroadcastNestedLoopJoinExec join = (BroadcastNestedLoopJoinExec) same;
      same = new CartesianProductExec(join.left(), join.right(), join.condition());
    }
    Partitioning spread = same.outputPartitioning(); // that of a full join, an Expand or a product is unknown as well
    return spread instanceof UnknownPartitioning || spread.numPartitions() != 1 ? new CoalesceExec(1, same) : same;
  }
}
