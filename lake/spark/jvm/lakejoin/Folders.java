package lakejoin;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.apache.hadoop.fs.BulkDelete;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;

/** What is below a folder of an object store or of HDFS, which have no links, and its removal (lake/delta/own_folder.py). */
public final class Folders {
  private static final String LOG = "_delta_log/";

  /** Three parts after empty lines: bytes and number of the files below a folder; its own names; the folders below it with a log of their
   * own. Empty if there is no folder. */
  public String below(FileSystem files, Path folder) throws IOException {
    long bytes = 0, number = 0;
    Set names = new TreeSet(), tables = new TreeSet();
    try {
      RemoteIterator listed = files.listFiles(folder, true);
      while (listed.hasNext()) {
        FileStatus file = (FileStatus) listed.next();
        String name = relative(files, folder, file.getPath());
        bytes += file.getLen();
        number++;
        names.add(name.indexOf('/') < 0 ? name : name.substring(0, name.indexOf('/')));
        int log = name.indexOf("/" + LOG);
        if (log >= 0) tables.add(name.substring(0, log));
      }
    } catch (FileNotFoundException none) {
      return "";
    }
    return bytes + "\n" + number + "\n\n" + lines(names) + "\n\n" + lines(tables);
  }

  /** Remove the files below a folder whose relative paths do not start with a name (empty: all), as many in a request as the storage takes: of a
   * log those that are no commits first, then the commits from the oldest on. Then the folders that are empty. */
  public void removeBelow(FileSystem files, Path folder, String but) throws IOException {
    Set commits = new TreeSet(), others = new TreeSet();
    try {
      RemoteIterator listed = files.listFiles(folder, true);
      while (listed.hasNext()) {
        String name = relative(files, folder, ((FileStatus) listed.next()).getPath());
        if (!but.isEmpty() && name.startsWith(but + "/")) continue;
        (name.matches(LOG + "\\d{20}\\.json") ? commits : others).add(name);
      }
    } catch (FileNotFoundException none) {
      return;
    }
    BulkDelete pages = files.createBulkDelete(folder);
    try {
      List page = new ArrayList();
      for (Object name : others) add(pages, page, new Path(folder, (String) name));
      flush(pages, page);
      for (Object name : commits) add(pages, page, new Path(folder, (String) name));
      flush(pages, page);
    } finally {
      pages.close();
    }
    if (but.isEmpty()) removeEmpty(files, folder);
  }

  private static void add(BulkDelete pages, List page, Path file) throws IOException {
    page.add(file);
    if (page.size() >= pages.pageSize()) flush(pages, page);
  }

  private static void flush(BulkDelete pages, List page) throws IOException {
    if (page.isEmpty()) return;
    List failed = pages.bulkDelete(new ArrayList(page));
    page.clear();
    if (!failed.isEmpty()) throw new IOException("can't be removed: " + failed.get(0));
  }

  private static void removeEmpty(FileSystem files, Path folder) throws IOException {
    try {
      for (FileStatus each : files.listStatus(folder)) if (each.isDirectory()) removeEmpty(files, each.getPath());
      if (files.listStatus(folder).length == 0) files.delete(folder, false);
    } catch (FileNotFoundException none) {
      return; // an object store has no folder without files
    }
  }

  private static String relative(FileSystem files, Path folder, Path file) {
    return files.makeQualified(file).toUri().getPath().substring(files.makeQualified(folder).toUri().getPath().length() + 1);
  }

  private static String lines(Set names) {
    StringBuilder found = new StringBuilder();
    for (Object name : names) found.append(found.length() == 0 ? "" : "\n").append(name);
    return found.toString();
  }
}
