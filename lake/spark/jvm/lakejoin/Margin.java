package lakejoin;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.zip.DeflaterOutputStream;
import java.util.zip.InflaterInputStream;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.InterpretedUnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import scala.collection.immutable.Seq;

/** Rows on the driver as a text and back, and where one of them is among others (lake/relations/first_rows.py). */
public final class Margin {
  /** The rows from one to another (not included), as Spark holds them: compressed, in characters that need no quotes. */
  public String packed(Dataset rows, int from, int to) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    DataOutputStream out = new DataOutputStream(new DeflaterOutputStream(bytes));
    List all = unsafe(rows);
    out.writeInt(to - from);
    for (int i = from; i < to; i++) {
      byte[] row = (byte[]) all.get(i);
      out.writeInt(row.length);
      out.write(row);
    }
    out.close();
    return Base64.getEncoder().encodeToString(bytes.toByteArray());
  }

  /** The rows of such a text, in the columns of a node of the tree; none for an empty text. */
  public Dataset unpacked(SparkSession session, List attributes, String text) throws IOException {
    List columns = new ArrayList(), rows = new ArrayList();
    for (Object each : attributes) {
      Attribute attribute = (Attribute) each;
      columns.add(((Attribute) attribute.newInstance()).withName("c" + attribute.exprId().id()).withNullability(true));
    }
    if (text.isEmpty()) return Plans.local(session, columns, Sequences.seq(rows));
    DataInputStream in = new DataInputStream(new InflaterInputStream(new ByteArrayInputStream(Base64.getDecoder().decode(text))));
    for (int left = in.readInt(); left > 0; left--) {
      byte[] bytes = new byte[in.readInt()];
      in.readFully(bytes);
      UnsafeRow row = new UnsafeRow(columns.size());
      row.pointTo(bytes, bytes.length);
      rows.add(row);
    }
    return Plans.local(session, columns, Sequences.seq(rows));
  }

  /** How many of some sorted rows come no later than a row that is among them: those before its first occurrence, and all its occurrences. */
  public int upTo(Dataset sorted, Dataset last) {
    byte[] bound = (byte[]) unsafe(last).get(0);
    List rows = unsafe(sorted);
    int first = -1, same = 0;
    for (int i = 0; i < rows.size(); i++) {
      if (!Arrays.equals(bound, (byte[]) rows.get(i))) continue;
      if (first < 0) first = i;
      same++;
    }
    return first + same;
  }

  private static List unsafe(Dataset rows) {
    LocalRelation local = (LocalRelation) rows.queryExecution().analyzed();
    List columns = new ArrayList();
    for (Object each : Sequences.list(local.output())) {
      columns.add(new BoundReference(columns.size(), ((Attribute) each).dataType(), true));
    }
    UnsafeProjection projection = InterpretedUnsafeProjection.createProjection((Seq) Sequences.seq(columns));
    List found = new ArrayList();
    for (Object row : Sequences.list(local.data())) found.add(projection.apply((InternalRow) row).copy().getBytes());
    return found;
  }
}
