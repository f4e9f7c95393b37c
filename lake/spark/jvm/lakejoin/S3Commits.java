package lakejoin;

import io.delta.storage.S3SingleDriverLogStore;
import java.io.ByteArrayOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.util.Arrays;
import java.util.Iterator;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Delta's log store for S3, with which drivers that commit at once can't lose a commit: a file of the log is created by a PUT with
 * If-None-Match, which S3 refuses (412, or 409 while another one is under way) where there is an object of that name.
 */
public final class S3Commits extends S3SingleDriverLogStore {
  private static final String ONLY_IF_ABSENT = "fs.option.create.conditional.overwrite";
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

  /** Create a file, or throw FileAlreadyExistsException where somebody else has. */
  private static void create(FileSystem files, Path path, byte[] text) throws IOException {
    try {
      put(files, path, text);
    } catch (IOException failure) {
      byte[] found = contents(files, path, failure);
      if (found == null) throw failure;
      if (Arrays.equals(found, text)) return; // ours: its answer was lost, and the PUT that was sent again was refused
      FileAlreadyExistsException lost = new FileAlreadyExistsException(path.toString());
      lost.initCause(failure);
      throw lost;
    }
  }

  private static void put(FileSystem files, Path path, byte[] text) throws IOException {
    FSDataOutputStreamBuilder builder = files.createFile(path);
    builder.create();
    builder.recursive();
    builder.overwrite(true); // without a look beforehand, which would decide nothing
    builder.must(ONLY_IF_ABSENT, true);
    FSDataOutputStream out = (FSDataOutputStream) builder.build();
    try {
      out.write(text);
    } catch (IOException failure) {
      out.abort(); // closing it would create the file
      throw failure;
    }
    out.close();
  }

  /** What is in a file; null where there is no such file, or that can't be known. */
  private static byte[] contents(FileSystem files, Path path, IOException failure) {
    try {
      FSDataInputStream in = files.open(path);
      try {
        return in.readAllBytes();
      } finally {
        in.close();
      }
    } catch (FileNotFoundException absent) {
      return null;
    } catch (IOException unknown) {
      failure.addSuppressed(unknown);
      return null;
    }
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
