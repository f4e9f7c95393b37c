package lakejoin;

import java.io.IOException;
import java.lang.reflect.Field;
import java.net.URI;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FilterFileSystem;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.io.nativeio.NativeIO;

/** Hadoop's local files, with permissions set by Java: without its native code Hadoop starts a process (chmod) for each file that it makes. */
public final class LocalFiles extends RawLocalFileSystem {
  private static final URI LOCAL = URI.create("file:///");
  private static final int SET_ID = 06000;

  public void setPermission(Path path, FsPermission permission) throws IOException {
    java.nio.file.Path file = pathToFile(path).toPath();
    boolean handsDown = Files.isDirectory(file) && ((Integer) Files.getAttribute(file, "unix:mode") & SET_ID) != 0; // Java would clear the bit
    if (permission.getStickyBit() || handsDown) {
      super.setPermission(path, permission);
      return;
    }
    String text = permission.getUserAction().SYMBOL + permission.getGroupAction().SYMBOL + permission.getOtherAction().SYMBOL;
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString(text));
  }

  /** Use this class for local files in this JVM, unless another one is configured, or Hadoop has its native code. */
  public void install(Configuration conf) throws Exception {
    FileSystem found = FileSystem.get(LOCAL, conf);
    boolean plain = found instanceof LocalFileSystem && ((LocalFileSystem) found).getRaw().getClass() == RawLocalFileSystem.class;
    if (!plain || NativeIO.isAvailable() || !FileSystems.getDefault().supportedFileAttributeViews().contains("posix")) return;
    initialize(LOCAL, conf);
    Field below = FilterFileSystem.class.getDeclaredField("fs");
    below.setAccessible(true);
    below.set(found, this);
  }
}
