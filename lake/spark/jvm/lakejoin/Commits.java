package lakejoin;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.NoSuchElementException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.LogSegment;
import org.apache.spark.sql.delta.actions.Action;
import org.apache.spark.sql.delta.actions.Action$;
import org.apache.spark.sql.delta.util.FileNames;
import scala.Option;
import scala.Tuple2;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/** A log's commits (lake/delta/log.py). Delta lists the whole log to find some, which grows with the table's age; their files' names are known. */
public final class Commits {
  private static final int MANY = 32, MOST = 600; // a real-time table's log has a checkpoint after 500 commits, if nothing rests before

  /** The commits first..last as DeltaLog.getChanges gives them. Raises as it does where one is no longer there. */
  public Iterator between(DeltaLog log, long first, long last) {
    return new ByName(log, first, last);
  }

  /**
   * A segment of a log on to its newest commit: the same one where none came. Null where the log has to be listed: the segment's own last
   * commit is not there as it was, its first or its checkpoint was cleaned away, or so many came that to list costs less, or to replay them
   * more; or one is missing among them.
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

  /** A number that tells what a commit's file says, by which the commit is known again; null where it is not in the log's folder any more. */
  public String mark(DeltaLog log, long version) throws IOException, NoSuchAlgorithmException {
    MessageDigest digest = MessageDigest.getInstance("SHA-256");
    Path path = file(log, version);
    InputStream said = null;
    try {
      said = path.getFileSystem(log.newDeltaHadoopConf()).open(path);
      digest.update(said.readAllBytes());
    } catch (FileNotFoundException gone) {
      return null;
    } finally {
      if (said != null) said.close();
    }
    return HexFormat.of().formatHex(digest.digest(), 0, 8);
  }

  /** When a commit's file was written, in milliseconds since 1970; 0 where it is not in the log's folder any more. */
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

  /** The next of some commits: its version and its actions as JSON, a line each; null after the last. */
  public String next(Iterator commits) {
    if (!commits.hasNext()) return null;
    Tuple2 next = (Tuple2) commits.next();
    StringBuilder said = new StringBuilder(String.valueOf(next._1()));
    for (Object action : Sequences.list((Seq) next._2())) said.append('\n').append(((Action) action).json());
    return said.toString();
  }

  /** Commits, each read when it is asked for; by Delta from the first on that can't be: it knows why, or another place for it. */
  public static final class ByName extends AbstractIterator {
    private final DeltaLog log;
    private final Configuration conf;
    private final long last;
    private long version;
    private Object ready;
    private Iterator rest;

    ByName(DeltaLog log, long first, long last) {
      this.log = log;
      this.conf = log.newDeltaHadoopConf();
      this.version = first;
      this.last = last;
    }

    public boolean hasNext() {
      if (ready == null && rest == null && version <= last) {
        try {
          List actions = new ArrayList();
          for (Object line : Sequences.list(log.store().read(file(log, version), conf))) actions.add(Action$.MODULE$.fromJson((String) line));
          ready = new Tuple2((Object) version++, Sequences.seq(actions));
        } catch (Exception gone) {
          rest = log.getChanges(version, last, Option.empty(), true);
        }
      }
      return ready != null || rest != null && rest.hasNext();
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
