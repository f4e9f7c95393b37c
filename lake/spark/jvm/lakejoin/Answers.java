package lakejoin;

import java.lang.reflect.Field;
import java.net.SocketException;
import java.util.List;
import py4j.DefaultGatewayServerListener;
import py4j.GatewayServer;
import py4j.Py4JServerConnection;

/**
 * Answers to Python without delay. A long one is sent in pieces, each of which waits for the receipt of the one before (Nagle's algorithm),
 * which the other side holds back for some 40 ms.
 */
public final class Answers extends DefaultGatewayServerListener {
  /** On all connections of a gateway's server, those to come among them. */
  public void hasten(GatewayServer server) throws Exception {
    server.addListener(this);
    Field field = GatewayServer.class.getDeclaredField("connections");
    field.setAccessible(true);
    for (Object connection : (List) field.get(server)) hasten((Py4JServerConnection) connection);
  }

  public void connectionStarted(Py4JServerConnection connection) {
    try {
      hasten(connection);
    } catch (SocketException closed) {
      // it has ended by now
    }
  }

  private static void hasten(Py4JServerConnection connection) throws SocketException {
    connection.getSocket().setTcpNoDelay(true);
  }
}
