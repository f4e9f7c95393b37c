package lakejoin;

import java.lang.reflect.Field;
import java.net.SocketException;
import java.util.List;
import py4j.DefaultGatewayServerListener;
import py4j.GatewayServer;
import py4j.Py4JServerConnection;

/**
 * Sends py4j's answers without delay (TCP_NODELAY). Otherwise each part of a long answer waits until the one before is acknowledged (Nagle's
 * algorithm), which the receiver delays by some 40 ms.
 */
public final class Answers extends DefaultGatewayServerListener {
  /** Set it on all connections of a gateway's server, also on later ones. */
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
