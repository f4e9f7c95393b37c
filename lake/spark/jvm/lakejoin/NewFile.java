package lakejoin;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Creates a file of S3 only where there is none: by a PUT with If-None-Match, which S3 refuses (412, or 409 while another one is under way)
 * where there is an object of that name.
 */
public final class NewFile {
  private static final String ONLY_IF_ABSENT = "fs.option.create.conditional.overwrite";
  private static final String REFUSED = "AWSUnsupportedFeatureException"; // S3A's class for the answer 501

  /**
   * Create a file of text; false where there is one of that name. It looks before it asks, since some storages with S3's interface ignore the
   * condition and overwrite; where the file system does not know it, or the storage refuses it, looking has to do.
   */
  public boolean put(FileSystem files, Path path, String text) throws IOException {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    if (files.exists(path)) return false;
    try {
      return create(files, path, bytes);
    } catch (IllegalArgumentException unknown) {
      return plainly(files, path, bytes);
    } catch (IOException failure) {
      if (!failure.getClass().getSimpleName().equals(REFUSED)) throw failure;
      return plainly(files, path, bytes);
    }
  }

  private static boolean plainly(FileSystem files, Path path, byte[] bytes) throws IOException {
    FSDataOutputStream out = files.create(path, false);
    try {
      out.write(bytes);
    } finally {
      out.close();
    }
    return true;
  }

  /** Create a file of bytes; false where somebody else has created one of that name. */
  public static boolean create(FileSystem files, Path path, byte[] text) throws IOException {
    try {
      request(files, path, text);
      return true;
    } catch (IOException failure) {
      byte[] found = contents(files, path, failure);
      if (found == null) throw failure;
      return Arrays.equals(found, text); // ours: its answer was lost, and the PUT that was sent again was refused
    }
  }

  private static void request(FileSystem files, Path path, byte[] text) throws IOException {
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
}
