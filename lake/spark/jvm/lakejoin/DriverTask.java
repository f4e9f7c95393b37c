package lakejoin;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.Partition;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.TaskContext$;
import org.apache.spark.TaskContextImpl;
import org.apache.spark.executor.TaskMetrics$;
import org.apache.spark.memory.TaskMemoryManager;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.CollectMetricsExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.exchange.Exchange;
import org.apache.spark.sql.execution.python.EvalPythonExec;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Map$;

/**
 * Runs a plan of one partition in the calling thread, as the task of a job would run it. A job for few rows costs more than the rows: Spark
 * serialises the task, schedules it, sends its metrics to listeners, and the driver waits for each of these.
 */
final class DriverTask {
  // Spark counts its own attempts up from 0, and -1024 stands for no task
  private static final AtomicLong ATTEMPTS = new AtomicLong(Long.MIN_VALUE + 1);

  private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
  private static final int MOST_RECORDS = 1000; // as many as Spark keeps of jobs
  private static final ArrayDeque RECORDS = new ArrayDeque();

  private DriverTask() {}

  /** The CPU nanoseconds of this thread so far. */
  static long cpu() {
    return THREADS.getCurrentThreadCpuTime();
  }

  /** Note a task that ran here: when it began (milliseconds since 1970), `cpu` then, and how many bytes it read. */
  static void record(long started, long cpu, long bytes) {
    String line = started + " " + (cpu() - cpu) + " " + bytes;
    synchronized (RECORDS) {
      if (RECORDS.size() == MOST_RECORDS) RECORDS.removeFirst();
      RECORDS.addLast(line);
    }
  }

  /** The last tasks that ran so, a line each: when it began (milliseconds since 1970), its CPU nanoseconds, the bytes that it read. */
  static String recorded() {
    StringBuilder found = new StringBuilder();
    synchronized (RECORDS) {
      for (Object line : RECORDS) found.append(line).append('\n');
    }
    return found.toString();
  }

  /** Whether the plan needs no job: no exchange of rows, no process of Python, nothing that is counted for a whole job. */
  static boolean runs(SparkPlan plan) {
    String name = plan.getClass().getName();
    if (plan instanceof Exchange || plan instanceof CollectMetricsExec || plan instanceof EvalPythonExec) return false;
    if (name.startsWith("org.apache.spark.sql.execution.python") || name.startsWith("org.apache.spark.sql.execution.r.")) return false;
    if (!plan.subqueries().isEmpty()) return false;
    for (Object child : Sequences.list(plan.children())) if (!runs((SparkPlan) child)) return false;
    return true;
  }

  /** The first rows of the plan, up to a limit; null where it has several partitions, or failed: a job then says why. */
  static InternalRow[] rows(SparkPlan plan, int limit) {
    try {
      return rows(plan.execute(), limit);
    } catch (Exception failed) {
      return null;
    }
  }

  /** The same of what a plan has made to be run. */
  static InternalRow[] rows(RDD rdd, int limit) {
    try {
      Partition[] partitions = rdd.partitions();
      return partitions.length == 1 ? inTask(rdd, partitions[0], limit) : null;
    } catch (Exception failed) {
      return null;
    } catch (OutOfMemoryError failed) { // Spark's own, where a task gets no more of the memory that all tasks share
      return null;
    }
  }

  private static InternalRow[] inTask(RDD rdd, Partition partition, int limit) {
    SparkEnv env = SparkEnv.get();
    long attempt = ATTEMPTS.getAndIncrement();
    TaskMemoryManager memory = new TaskMemoryManager(env.memoryManager(), attempt);
    TaskContextImpl task =
        new TaskContextImpl(
            0, 0, 0, attempt, 0, 1, memory, new Properties(), env.metricsSystem(), TaskMetrics$.MODULE$.empty(), 1, Map$.MODULE$.empty());
    env.blockManager().registerTask(attempt);
    TaskContext before = TaskContext.get();
    TaskContext$.MODULE$.setTaskContext(task);
    long started = System.currentTimeMillis();
    long cpu = cpu();
    try {
      return collected(rdd.iterator(partition, task), limit);
    } finally {
      end(env, task, memory);
      restore(before);
      record(started, cpu, task.taskMetrics().inputMetrics().bytesRead());
    }
  }

  private static InternalRow[] collected(Iterator each, int limit) {
    List found = new ArrayList();
    while (found.size() < limit && each.hasNext()) found.add(((InternalRow) each.next()).copy());
    return (InternalRow[]) found.toArray(new InternalRow[found.size()]);
  }

  /** What an executor does after a task, whatever the task's own listeners raise. */
  private static void end(SparkEnv env, TaskContextImpl task, TaskMemoryManager memory) {
    try {
      task.markTaskCompleted(Option.empty());
    } finally {
      memory.cleanUpAllAllocatedMemory();
      env.memoryManager().releaseAllExecutionMemoryForTask(task.taskAttemptId());
      env.blockManager().releaseAllLocksForTask(task.taskAttemptId());
    }
  }

  private static void restore(TaskContext before) {
    if (before == null) TaskContext$.MODULE$.unset();
    else TaskContext$.MODULE$.setTaskContext(before);
  }
}
