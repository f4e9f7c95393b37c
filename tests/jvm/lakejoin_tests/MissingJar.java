package lakejoin_tests;

import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.RawLocalFileSystem;

/** A file system whose library is not on the class path, as Hadoop's S3A without the jar of its input streams. */
public final class MissingJar extends RawLocalFileSystem {
  public void initialize(URI name, Configuration conf) {
    throw new NoClassDefFoundError("software/amazon/s3/analyticsaccelerator/S3SeekableInputStreamFactory");
  }
}
