package lakejoin;

import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.Partition;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.rdd.ShuffledRDDPartition;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.physical.SinglePartition$;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SortExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.internal.SQLConf;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction0;

/**
 * Plans over rows on the driver, made once and run many times (docs/decisions/0047-plans-are-kept-by-their-shape.md). Refreshes of a view ask for
 * the same plans over other rows: to optimise one and to make it a physical one with code takes longer than its rows do. So each is kept by its
 * shape, over leaves whose rows are put in when it is run.
 */
final class Prepared {
  private static final long MOST = Math.min(1000, Math.max(100, Runtime.getRuntime().maxMemory() >> 21)); // each takes 160 KB and more
  private static final LinkedHashMap KEPT = new LinkedHashMap(); // by the keys of shapes; what was used last is the last
  private static final Set SEEN = new LinkedHashSet(); // hashes of the keys of shapes
  private static final Prepared NONE = new Prepared(null, null, null, null); // for a shape that needs a job
  private static boolean keeps = true;
  private static long plansMade, plansRun; // since the process began

  private final List leaves; // Leaf, in the order of the plan
  private final Seq columns;
  private final RDD rows;
  private final List sorts; // SortExec

  private Prepared(List leaves, Seq columns, RDD rows, List sorts) {
    this.leaves = leaves;
    this.columns = columns;
    this.rows = rows;
    this.sorts = sorts;
  }

  /** The rows of a plan, and its columns as the optimiser knows them. */
  static final class Found {
    final InternalRow[] rows;
    final Seq columns;

    Found(InternalRow[] rows, Seq columns) {
      this.rows = rows;
      this.columns = columns;
    }
  }

  /** Keep plans from now on, or none; says whether they were kept. */
  static boolean keep(boolean plans) {
    synchronized (KEPT) {
      boolean before = keeps;
      keeps = plans;
      return before;
    }
  }

  /**
   * The first rows of an analysed plan, up to a limit. Null for the first plan of its shape, where it is not over rows on the driver alone, needs a
   * job, or failed.
   */
  static Found rows(SparkSession session, LogicalPlan plan, int limit) {
    Shape shape = keeps ? Shape.of(session, plan) : null;
    if (shape == null || !again(shape.key)) return null;
    Prepared found = taken(shape.key);
    if (found == NONE) return null;
    SparkSession before = ActiveSession.swap(session);
    try {
      if (found == null) found = made(session, plan, shape);
      InternalRow[] rows = found == null || found == NONE ? null : found.ran(session, shape.relations, limit);
      if (rows != null || found == NONE) putBack(shape.key, found);
      return rows == null ? null : new Found(rows, found.columns);
    } finally {
      ActiveSession.swap(before);
    }
  }

  /** How many plans were made, and how often one was run, since the process began. */
  static long[] counts() {
    synchronized (KEPT) {
      return new long[] {plansMade, plansRun};
    }
  }

  /** Whether a plan of this shape was run before: sessions of one command, and plans with values that change, leave nothing here. */
  private static boolean again(Shape.Key key) {
    synchronized (KEPT) {
      if (KEPT.containsKey(key) || !SEEN.add(Integer.valueOf(key.hashCode()))) return true;
      cut(SEEN, 10 * MOST);
      return false;
    }
  }

  /** A kept plan, which no other thread runs until it is put back. */
  private static Prepared taken(Shape.Key key) {
    synchronized (KEPT) {
      Prepared found = (Prepared) KEPT.remove(key);
      if (found == NONE) KEPT.put(key, found);
      return found;
    }
  }

  private static void putBack(Shape.Key key, Prepared prepared) {
    synchronized (KEPT) {
      if (prepared != NONE) plansRun++;
      KEPT.put(key, prepared);
      cut(KEPT.keySet(), MOST);
    }
  }

  private static void cut(Set all, long most) {
    Iterator oldest = all.iterator();
    while (all.size() > most) {
      oldest.next();
      oldest.remove();
    }
  }

  /** Null where it can't be made: the optimiser computes with constants, and raises what no row may ever reach. */
  private static Prepared made(SparkSession session, LogicalPlan plan, Shape shape) {
    try {
      List leaves = new ArrayList();
      LogicalPlan template = over(session, plan, shape.relations.iterator(), leaves);
      template.setAnalyzed();
      Prepared made = made(session, Dataset.ofRows(session, template).queryExecution(), leaves);
      synchronized (KEPT) {
        if (made != NONE) plansMade++;
      }
      return shape.key.holds() ? made : null; // another thread has changed the settings by which it is made
    } catch (Exception failed) {
      return null;
    }
  }

  private static Prepared made(final SparkSession session, final QueryExecution query, final List leaves) {
    final Seq columns = query.optimizedPlan().output();
    return (Prepared)
        SQLConf.withExistingConf(
            session.sessionState().conf(),
            new AbstractFunction0() {
              public Object apply() {
                SparkPlan one = OneTask.prepared(session, query.sparkPlan());
                if (!DriverTask.runs(one)) return NONE;
                RDD rows = one.execute();
                return rows.partitions().length == 1 ? new Prepared(leaves, columns, rows, sorts(one)) : NONE;
              }
            });
  }

  private static List sorts(SparkPlan plan) {
    List found = new ArrayList();
    if (plan instanceof SortExec) found.add(plan);
    for (Object child : Sequences.list(plan.children())) found.addAll(sorts((SparkPlan) child));
    return found;
  }

  /** The plan with a leaf of any rows in the place of each local relation. */
  private static LogicalPlan over(SparkSession session, LogicalPlan plan, Iterator relations, List leaves) {
    if (plan instanceof LocalRelation) {
      if (relations.next() != plan) throw new IllegalStateException("leaves in another order");
      Leaf leaf = new Leaf(session.sparkContext());
      leaves.add(leaf);
      return leaf.relation(session, (LocalRelation) plan);
    }
    List children = new ArrayList();
    for (Object child : Sequences.list(plan.children())) children.add(over(session, (LogicalPlan) child, relations, leaves));
    LogicalPlan made = children.isEmpty() ? plan : (LogicalPlan) plan.withNewChildren(Sequences.seq(children));
    if (plan.analyzed()) made.setAnalyzed();
    return made;
  }

  private InternalRow[] ran(final SparkSession session, List relations, final int limit) {
    for (int i = 0; i < leaves.size(); i++) ((Leaf) leaves.get(i)).rows = ((LocalRelation) relations.get(i)).data();
    try {
      return (InternalRow[])
          SQLConf.withExistingConf(
              session.sessionState().conf(),
              new AbstractFunction0() {
                public Object apply() {
                  return DriverTask.rows(rows, limit);
                }
              });
    } finally {
      for (Object leaf : leaves) ((Leaf) leaf).rows = null;
      for (Object sort : sorts) ((SortExec) sort).rowSorter_$eq(null); // it holds the memory in which it has sorted
    }
  }

  /** The rows that a leaf has now, as its one partition. */
  private static final class Leaf extends RDD {
    Seq rows;

    Leaf(SparkContext context) {
      super(context, Sequences.seq(new ArrayList()), ClassTag$.MODULE$.apply(InternalRow.class));
    }

    public Partition[] getPartitions() {
      return new Partition[] {new ShuffledRDDPartition(0)}; // no more than a number
    }

    public scala.collection.Iterator compute(Partition partition, TaskContext task) {
      return rows.iterator();
    }

    /** The leaf in a logical plan, in the place of a relation. Versions of Spark differ in what comes between the first and the last of these. */
    LogicalPlan relation(SparkSession session, LocalRelation of) {
      Constructor made = LogicalRDD.class.getConstructors()[0];
      Object[] first = {of.output(), this, SinglePartition$.MODULE$, Sequences.seq(new ArrayList()), Boolean.FALSE};
      Object[] last = {session, Option.apply(of.stats()), Option.empty()};
      Object[] all = new Object[made.getParameterTypes().length];
      Arrays.fill(all, Option.empty());
      System.arraycopy(first, 0, all, 0, first.length);
      System.arraycopy(last, 0, all, all.length - last.length, last.length);
      try {
        return (LogicalPlan) made.newInstance(all);
      } catch (ReflectiveOperationException other) {
        throw new IllegalStateException("another LogicalRDD than those of Spark 4.0 to 4.2", other);
      }
    }
  }
}
