package lakejoin_tests;

import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathIOException;
import org.apache.hadoop.fs.RawLocalFileSystem;

/**
 * A local folder under the scheme s3a, which creates files as S3A does: they appear when they are closed, over what there is then, unless
 * the creation is conditional. What happens to the next creations of a commit is set by `next`.
 */
public final class FakeS3 extends RawLocalFileSystem {
  private static final String ONLY_IF_ABSENT = "fs.option.create.conditional.overwrite";
  private static volatile String happens = "";
  private static final AtomicInteger CONDITIONAL = new AtomicInteger();
  private URI uri;

  /** What happens at the next creation of a commit: "foreign" (another driver's comes first), "lost answer", "failure"; "ignoring": always. */
  public void next(String what) {
    happens = what;
  }

  /** How many files were created on the condition that there are none. */
  public int conditional() {
    return CONDITIONAL.get();
  }

  public void initialize(URI name, Configuration conf) throws IOException {
    super.initialize(name, conf);
    uri = URI.create(name.getScheme() + "://" + name.getAuthority());
  }

  public URI getUri() {
    return uri == null ? super.getUri() : uri;
  }

  public String getScheme() {
    return "s3a";
  }

  public FSDataOutputStreamBuilder createFile(Path path) {
    return new Builder(this, path);
  }

  public FSDataOutputStream create(
      Path path, boolean overwrite, int buffer, short replication, long block, org.apache.hadoop.util.Progressable progress) throws IOException {
    if (!overwrite && exists(path)) throw new org.apache.hadoop.fs.FileAlreadyExistsException(path.toString()); // a look beforehand, as S3A's
    return new FSDataOutputStream(new Object_(this, path, false), statistics);
  }

  /** A PUT of all that was written. */
  void put(Path path, byte[] text, boolean onlyIfAbsent) throws IOException {
    File file = pathToFile(path);
    file.getParentFile().mkdirs();
    String what = path.getName().endsWith(".json") ? happens : "";
    if (what.equals("failure")) throw new IOException("a timeout");
    if (what.equals("foreign")) {
      happens = "";
      Files.write(file.toPath(), "{\"commitInfo\":{\"operation\":\"FOREIGN\",\"timestamp\":0}}\n".getBytes(StandardCharsets.UTF_8));
    }
    if (onlyIfAbsent && !happens.equals("ignoring")) {
      CONDITIONAL.incrementAndGet();
      File part = File.createTempFile(".put", "", file.getParentFile());
      Files.write(part.toPath(), text);
      try {
        Files.createLink(file.toPath(), part.toPath());
      } catch (java.nio.file.FileAlreadyExistsException refused) {
        throw new PathIOException(path.toString(), "412");
      } finally {
        part.delete();
      }
    } else {
      Files.write(file.toPath(), text);
    }
    if (what.equals("lost answer")) {
      happens = "";
      throw new PathIOException(path.toString(), "412 for the same PUT, sent again");
    }
  }

  static final class Builder extends FSDataOutputStreamBuilder {
    private final FakeS3 files;
    private final Path path;

    Builder(FakeS3 files, Path path) {
      super(files, path);
      this.files = files;
      this.path = path;
    }

    public FSDataOutputStreamBuilder getThisBuilder() {
      return this;
    }

    public FSDataOutputStream build() throws IOException {
      return new FSDataOutputStream(new Object_(files, path, getOptions().getBoolean(ONLY_IF_ABSENT, false)), null);
    }
  }

  /** What is written of an object before it is there. */
  static final class Object_ extends ByteArrayOutputStream {
    private final FakeS3 files;
    private final Path path;
    private final boolean onlyIfAbsent;
    private boolean open = true;

    Object_(FakeS3 files, Path path, boolean onlyIfAbsent) {
      this.files = files;
      this.path = path;
      this.onlyIfAbsent = onlyIfAbsent;
    }

    public void close() throws IOException {
      if (!open) return;
      open = false;
      files.put(path, toByteArray(), onlyIfAbsent);
    }
  }
}
