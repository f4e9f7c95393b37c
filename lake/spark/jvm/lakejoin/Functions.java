package lakejoin;

import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.ObjectOutputStream;
import java.lang.invoke.SerializedLambda;
import java.lang.reflect.Method;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.spark.api.python.PythonFunction;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.analysis.FunctionRegistry$;
import org.apache.spark.sql.catalyst.analysis.FunctionRegistryBase;
import org.apache.spark.sql.catalyst.analysis.TableFunctionRegistry$;
import org.apache.spark.sql.classic.SparkSession;
import scala.collection.immutable.Seq;

/** What a session's functions are made of, and which of them are registered (lake/catalyst/user_functions.py). */
public final class Functions {
  private static final int DEEPEST = 8;

  /** The pickled function. */
  public byte[] command(PythonFunction function) {
    List items = Sequences.list((Seq) function.command());
    byte[] found = new byte[items.size()];
    for (int i = 0; i < found.length; i++) found[i] = ((Byte) items.get(i)).byteValue();
    return found;
  }

  /** Names the functions registered in a session that are not Spark's own; another function under a name gives another text. */
  public String registered(SparkSession session) {
    return others(session.sessionState().functionRegistry(), FunctionRegistry$.MODULE$.builtin())
        + others(session.sessionState().tableFunctionRegistry(), TableFunctionRegistry$.MODULE$.builtin());
  }

  private static String others(FunctionRegistryBase registry, FunctionRegistryBase builtin) {
    List found = new ArrayList();
    List names = Sequences.list(registry.listFunction().toSeq());
    for (int i = 0; i < names.size(); i++) {
      FunctionIdentifier name = (FunctionIdentifier) names.get(i);
      Object own = registry.lookupFunctionBuilder(name).get();
      if (builtin.functionExists(name) && builtin.lookupFunctionBuilder(name).get() == own) continue;
      found.add(name.unquotedString() + "@" + System.identityHashCode(own));
    }
    Collections.sort(found);
    return found.toString();
  }

  /** A digest of the code and the captured values of a function on the JVM; null where its code can't be read. */
  public String digest(Object function) {
    try {
      MessageDigest found = MessageDigest.getInstance("SHA-256");
      add(found, function, 0);
      byte[] bytes = found.digest();
      StringBuilder text = new StringBuilder();
      for (int i = 0; i < 8; i++) text.append(String.format("%02x", new Object[] {Byte.valueOf(bytes[i])}));
      return text.toString();
    } catch (Exception unreadable) {
      return null;
    }
  }

  private static void add(MessageDigest found, Object value, int depth) throws Exception {
    if (depth > DEEPEST) throw new IllegalStateException();
    if (value == null || value.getClass().getName().startsWith("java.lang.")) {
      found.update(String.valueOf(value).getBytes("UTF-8"));
      return;
    }
    SerializedLambda lambda = lambda(value);
    if (lambda == null) {
      addClass(found, value.getClass());
      ByteArrayOutputStream bytes = new ByteArrayOutputStream();
      ObjectOutputStream out = new ObjectOutputStream(bytes);
      out.writeObject(value); // its fields
      out.close();
      found.update(bytes.toByteArray());
      return;
    }
    ClassLoader loader = value.getClass().getClassLoader();
    addClass(found, Class.forName(lambda.getImplClass().replace('/', '.'), false, loader));
    found.update((lambda.getImplMethodName() + lambda.getImplMethodSignature()).getBytes("UTF-8"));
    for (int i = 0; i < lambda.getCapturedArgCount(); i++) add(found, lambda.getCapturedArg(i), depth + 1);
  }

  /** What a lambda is made of; null for another object. */
  private static SerializedLambda lambda(Object value) throws Exception {
    Method method;
    try {
      method = value.getClass().getDeclaredMethod("writeReplace", new Class[0]);
    } catch (NoSuchMethodException none) {
      return null;
    }
    method.setAccessible(true);
    Object replaced = method.invoke(value, new Object[0]);
    return replaced instanceof SerializedLambda ? (SerializedLambda) replaced : null;
  }

  private static void addClass(MessageDigest found, Class type) throws Exception {
    String name = type.getName().replace('.', '/') + ".class";
    InputStream code = type.getClassLoader() == null ? ClassLoader.getSystemResourceAsStream(name) : type.getClassLoader().getResourceAsStream(name);
    if (code == null) throw new IllegalStateException(name);
    try {
      byte[] buffer = new byte[8192];
      for (int length = code.read(buffer); length >= 0; length = code.read(buffer)) found.update(buffer, 0, length);
    } finally {
      code.close();
    }
  }
}
