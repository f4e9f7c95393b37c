package lakejoin;

import java.io.IOException;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.actions.DeletionVectorDescriptor;
import org.apache.spark.sql.delta.deletionvectors.RoaringBitmapArray;
import org.apache.spark.sql.delta.deletionvectors.RoaringBitmapArrayFormat;
import org.apache.spark.sql.delta.storage.dv.DeletionVectorStoreUtils;
import org.apache.spark.sql.delta.storage.dv.HadoopFileSystemDVStore;
import scala.Option;
import scala.Tuple2;

/** Deletion vectors of few rows, written by the driver into one file: Delta would run two Spark jobs. */
public final class DeletionVectors {
  /**
   * Add to `actions` what deletes some rows from a table's files (AddFile actions). `positions`: a file's URL and a row's position in it.
   * Returns the number of rows deleted, without those that were deleted before.
   */
  public long delete(SparkSession session, DeltaLog log, List files, Dataset positions, List actions) throws IOException {
    Map byName = new HashMap();
    for (Object file : files) byName.put(Files.name(((AddFile) file).path()), file);
    Path table = log.dataPath();
    HadoopFileSystemDVStore store = new HadoopFileSystemDVStore(log.newDeltaHadoopConf());
    Map vectors = new LinkedHashMap();
    for (Object each : Plans.rows(session, positions)) {
      InternalRow row = (InternalRow) each;
      String name = Files.name(row.getUTF8String(0).toString());
      if (!vectors.containsKey(name)) vectors.put(name, vector(store, table, (AddFile) byName.get(name)));
      ((RoaringBitmapArray) vectors.get(name)).add(row.getLong(1));
    }
    long deleted = 0;
    UUID id = UUID.randomUUID();
    DeletionVectorStoreUtils.Writer writer = null;
    try {
      for (Object each : vectors.entrySet()) {
        AddFile file = (AddFile) byName.get(((Map.Entry) each).getKey());
        RoaringBitmapArray vector = (RoaringBitmapArray) ((Map.Entry) each).getValue();
        long marked = vector.cardinality();
        deleted += marked - file.numDeletedRecords();
        if (file.numPhysicalRecords().isDefined() && (Long) file.numPhysicalRecords().get() == marked) {
          actions.add(file.removeWithTimestamp(System.currentTimeMillis(), true));
          continue;
        }
        if (writer == null) writer = store.createWriter(store.generateFileNameInTable(store.pathWithFileSystem(table), id, ""));
        vector.runOptimize();
        DeletionVectorStoreUtils.DVRangeDescriptor place = writer.write(vector.serializeAsByteArray(RoaringBitmapArrayFormat.Portable()));
        Tuple2 both = file.removeRows(DeletionVectorDescriptor.onDiskWithRelativePath(
            id, "", place.length(), marked, Option.apply((Object) place.offset()), Option.empty()), true, true);
        actions.add(both._1());
        actions.add(both._2());
      }
    } finally {
      if (writer != null) writer.close();
    }
    return deleted;
  }

  private static RoaringBitmapArray vector(HadoopFileSystemDVStore store, Path table, AddFile file) {
    return file.deletionVector() == null ? new RoaringBitmapArray() : store.read(file.deletionVector(), table);
  }
}
