package lakejoin;

import io.delta.storage.S3SingleDriverLogStore;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.util.Iterator;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Delta's log store for S3, with which drivers that commit at once can't lose a commit: a file of the log is created only where there is
 * none (NewFile.java).
 */
public final class S3Commits extends S3SingleDriverLogStore {
  private static final Set HONOURING = ConcurrentHashMap.newKeySet();

  public S3Commits(Configuration conf) {
    super(conf);
  }

  public void write(Path path, Iterator actions, Boolean overwrite, Configuration conf) throws IOException {
    if (overwrite.booleanValue()) {
      super.write(path, actions, overwrite, conf);
      return;
    }
    ByteArrayOutputStream text = new ByteArrayOutputStream();
    while (actions.hasNext()) {
      text.write(((String) actions.next()).getBytes(StandardCharsets.UTF_8));
      text.write('\n');
    }
    FileSystem files = path.getFileSystem(conf);
    refuseUnlessHonoured(files, path.getParent());
    create(files, path, text.toByteArray());
  }

  private static void create(FileSystem files, Path path, byte[] text) throws IOException {
    if (!NewFile.create(files, path, text)) throw new FileAlreadyExistsException(path.toString());
  }

  /** Some storages with S3's interface ignore If-None-Match, and overwrite: seen once a bucket and process, on a file beside the log's. */
  private static void refuseUnlessHonoured(FileSystem files, Path folder) throws IOException {
    if (HONOURING.contains(files.getUri())) return;
    Path probe = new Path(folder, ".lakejoin-" + UUID.randomUUID());
    byte[] second = "2".getBytes(StandardCharsets.UTF_8);
    create(files, probe, "1".getBytes(StandardCharsets.UTF_8));
    boolean overwritten = true;
    try {
      create(files, probe, second);
    } catch (FileAlreadyExistsException honoured) {
      overwritten = false;
    } finally {
      files.delete(probe, false);
    }
    if (overwritten) {
      throw new IOException("the storage at " + files.getUri() + " ignores If-None-Match, so two writers at once could lose a commit. Nothing"
          + " was written; set `single_writer: true` if only one writer ever runs");
    }
    HONOURING.add(files.getUri());
  }
}
