package lakejoin;

import java.net.URI;
import java.net.URISyntaxException;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.expressions.XXH64;
import org.apache.spark.unsafe.Platform;

/**
 * The names, without folders, of the files in some places (lake/delta/sidecar.py). Each is stored as a hash of 64 bits: a million files take
 * 8 MB, and two names have the same hash with a probability of 2^-64.
 */
public final class Names {
  private static final String SEPARATOR = "/"; // no name of a file contains it
  private final long[] hashes;

  /** `paths`: encoded as in a URI. */
  Names(String[] paths) throws URISyntaxException {
    long[] found = new long[paths.length];
    for (int i = 0; i < paths.length; i++) {
      String path = new URI(paths[i]).getPath();
      found[i] = hash(path.substring(path.lastIndexOf(SEPARATOR) + 1));
    }
    Arrays.sort(found);
    this.hashes = found;
  }

  /** Those of some names, separated by slashes, that are not among these. */
  public String missing(String names) {
    StringBuilder found = new StringBuilder();
    for (String name : names.split(SEPARATOR))
      if (Arrays.binarySearch(hashes, hash(name)) < 0) found.append(found.length() == 0 ? "" : SEPARATOR).append(name);
    return found.toString();
  }

  /** How many of these are not among others. */
  public long without(Names others) {
    long found = 0;
    for (int i = 0; i < hashes.length; i++) if (Arrays.binarySearch(others.hashes, hashes[i]) < 0) found++;
    return found;
  }

  private static long hash(String name) {
    byte[] bytes = name.getBytes(java.nio.charset.StandardCharsets.UTF_8);
    return XXH64.hashUnsafeBytes(bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length, 42L);
  }
}
