package lakejoin;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.concurrent.Callable;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.LogSegment;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.actions.Action;
import org.apache.spark.sql.delta.actions.Action$;
import org.apache.spark.sql.delta.util.FileNames;
import scala.Option;
import scala.Tuple2;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/** A log's commits (lake/delta/log.py), found by their file names: Delta would list the whole log, which grows with the table's age. */
public final class Commits {
  private static final int MANY = 32, MOST = 600; // a real-time table gets a checkpoint after 500 commits at the latest
  private static final int AHEAD = 8;
  private static final ThreadPoolExecutor THREADS =
      new ThreadPoolExecutor(AHEAD, AHEAD, 10L, TimeUnit.SECONDS, new LinkedBlockingQueue(), new Daemons());

  static {
    THREADS.allowCoreThreadTimeOut(true);
  }

  /** The commits first..last as DeltaLog.getChanges gives them. Raises as it does if one is no longer in the log. */
  public Iterator between(DeltaLog log, long first, long last) {
    return new ByName(log, first, last);
  }

  /**
   * The version of a table that Delta has in memory, with a list of its files, if it is the newest: Delta itself would list the log to find out.
   * Null where it is not, or where names of files do not tell.
   */
  public Snapshot inMemory(DeltaLog log) throws IOException {
    Snapshot snapshot = log.unsafeVolatileSnapshot();
    LogSegment segment = snapshot.logSegment();
    return new Versions().byName(snapshot) && segment.equals(following(log, segment)) ? snapshot : null;
  }

  /**
   * A segment of a log extended to its newest commit; the same one if there is none. Null if the log has to be listed: the segment's last
   * commit has changed, its first commit or its checkpoint was cleaned up, a commit is missing, or there are so many new commits that listing
   * is cheaper.
   */
  public LogSegment following(DeltaLog log, LogSegment segment) throws IOException {
    if (segment.deltas().isEmpty()) return null;
    FileSystem files = log.logPath().getFileSystem(log.newDeltaHadoopConf());
    FileStatus last = (FileStatus) segment.deltas().last();
    if (!last.getPath().getName().equals(file(log, segment.version()).getName())) return null;
    FileStatus now = status(files, file(log, segment.version()));
    if (now == null || now.getLen() != last.getLen() || now.getModificationTime() != last.getModificationTime()) return null;
    if (status(files, ((FileStatus) segment.deltas().head()).getPath()) == null) return null;
    for (Object part : Sequences.list(segment.checkpointProvider().topLevelFiles()))
      if (status(files, ((FileStatus) part).getPath()) == null) return null;
    List deltas = new ArrayList();
    long version = segment.version();
    for (FileStatus next = status(files, file(log, version + 1)); next != null; next = status(files, file(log, ++version + 1))) {
      deltas.add(next);
      if (deltas.size() > MANY || segment.deltas().size() + deltas.size() > MOST) return null;
      now = next;
    }
    if (status(files, file(log, version + 2)) != null) return null;
    if (deltas.isEmpty()) return segment;
    deltas.addAll(0, Sequences.list(segment.deltas()));
    return segment.copy(segment.logPath(), version, Sequences.seq(deltas), segment.checkpointProvider(), now.getModificationTime());
  }

  /** A digest of a commit's file, which identifies the commit; null if it is no longer in the log. */
  public String mark(DeltaLog log, long version) throws IOException, NoSuchAlgorithmException {
    MessageDigest digest = MessageDigest.getInstance("SHA-256");
    Path path = file(log, version);
    InputStream said = null;
    try {
      said = path.getFileSystem(log.newDeltaHadoopConf()).open(path);
      byte[] part = new byte[1 << 16];
      for (int read = said.read(part); read >= 0; read = said.read(part)) digest.update(part, 0, read);
    } catch (FileNotFoundException missing) {
      return null;
    } finally {
      if (said != null) said.close();
    }
    return HexFormat.of().formatHex(digest.digest(), 0, 8);
  }

  /** When a commit's file was written, in milliseconds since 1970; 0 if it is no longer in the log. */
  public long written(DeltaLog log, long version) throws IOException {
    Path path = file(log, version);
    FileStatus found = status(path.getFileSystem(log.newDeltaHadoopConf()), path);
    return found == null ? 0L : found.getModificationTime();
  }

  private static Path file(DeltaLog log, long version) {
    return FileNames.unsafeDeltaFile(log.logPath(), version);
  }

  private static FileStatus status(FileSystem files, Path path) throws IOException {
    try {
      return files.getFileStatus(path);
    } catch (FileNotFoundException none) {
      return null;
    }
  }

  /**
   * The next actions of some commits, at most `most`: a line with the commit's version and whether more of its actions follow, then the
   * actions as JSON, a line each. Null after the last commit.
   */
  public String next(ByName commits, int most) {
    return commits.part(most);
  }

  private static List read(DeltaLog log, Configuration conf, long version) {
    List actions = new ArrayList();
    for (Object line : Sequences.list(log.store().read(file(log, version), conf))) actions.add(Action$.MODULE$.fromJson((String) line));
    return actions;
  }

  /** Reads one commit, in another thread. */
  private static final class Read implements Callable {
    private final DeltaLog log;
    private final Configuration conf;
    private final long version;

    Read(DeltaLog log, Configuration conf, long version) {
      this.log = log;
      this.conf = conf;
      this.version = version;
    }

    public Object call() {
      return read(log, conf, version);
    }
  }

  /** Makes daemon threads, which do not keep the JVM running. */
  private static final class Daemons implements ThreadFactory {
    public Thread newThread(Runnable work) {
      Thread made = new Thread(work, "lakejoin-commits");
      made.setDaemon(true);
      return made;
    }
  }

  /**
   * Commits, read on demand, up to `AHEAD` of them at the same time: each is a request to the storage. From the first that fails on, Delta
   * reads them: it has the error message, or another place for the commit.
   */
  public static final class ByName extends AbstractIterator {
    private final DeltaLog log;
    private final Configuration conf;
    private final long last;
    private final ArrayDeque ahead = new ArrayDeque();
    private long version;
    private long requested;
    private Object ready;
    private Iterator rest;
    private Tuple2 current;
    private int done;

    ByName(DeltaLog log, long first, long last) {
      this.log = log;
      this.conf = log.newDeltaHadoopConf();
      this.version = first;
      this.requested = first;
      this.last = last;
    }

    public boolean hasNext() {
      if (ready == null && rest == null && version <= last) {
        try {
          ready = new Tuple2((Object) version, Sequences.seq(nextActions()));
          version++;
        } catch (Exception failed) {
          for (Object each : ahead) ((Future) each).cancel(true);
          ahead.clear();
          rest = log.getChanges(version, last, Option.empty(), true);
        }
      }
      return ready != null || rest != null && rest.hasNext();
    }

    private List nextActions() throws Exception {
      if (version == last && ahead.isEmpty()) return read(log, conf, version); // one commit needs no thread
      while (ahead.size() < AHEAD && requested <= last) ahead.add(THREADS.submit(new Read(log, conf, requested++)));
      return (List) ((Future) ahead.remove()).get();
    }

    String part(int most) {
      if (current == null) {
        if (!hasNext()) return null;
        current = (Tuple2) next();
        done = 0;
      }
      List actions = Sequences.list((Seq) current._2());
      int end = Math.min(actions.size(), done + most);
      StringBuilder said = new StringBuilder().append(current._1()).append(' ').append(end < actions.size());
      for (; done < end; done++) said.append('\n').append(((Action) actions.get(done)).json());
      if (end == actions.size()) current = null;
      return said.toString();
    }

    public Object next() {
      if (!hasNext()) throw new NoSuchElementException();
      if (ready == null) return rest.next();
      Object next = ready;
      ready = null;
      return next;
    }
  }
}
