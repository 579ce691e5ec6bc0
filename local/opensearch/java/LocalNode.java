import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.opensearch.common.network.NetworkAddress;
import org.opensearch.common.settings.Settings;
import org.opensearch.http.HttpServerTransport;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.plugins.Plugin;

/**
 * One OpenSearch node on this machine, its plugins on the class path, the way OpenSearch's own tests start nodes.
 *
 * <p>Started as {@code java -cp classes:lib/* LocalNode HOME PORT PARENT [name=value …]}. Once requests are answered it
 * writes its address to the file {@code address} in HOME. It closes on SIGTERM, and when the process PARENT is gone.
 * Starting the server class itself would refuse to run as root and wants a home with descriptors; a subclass needs neither.
 */
public final class LocalNode extends Node {
    private static final List<String> PLUGINS = List.of(
        "org.opensearch.transport.Netty4Plugin",
        "org.opensearch.painless.PainlessPlugin",
        "org.opensearch.analysis.common.CommonAnalysisPlugin",
        "org.opensearch.knn.plugin.KNNPlugin"
    );

    private LocalNode(Settings settings, List<Class<? extends Plugin>> plugins) {
        super(InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), null, () -> "local"), plugins, false);
    }

    public static void main(String[] arguments) throws Exception {
        Path home = Path.of(arguments[0]).toAbsolutePath();
        Settings.Builder settings = Settings.builder()
            .put("path.home", home)
            .put("path.data", home.resolve("data"))
            .put("path.logs", home.resolve("logs"))
            .put("http.port", arguments[1])
            .put("transport.port", "0")
            .put("network.host", "127.0.0.1")
            .put("cluster.name", "memory-banks-local")
            .put("node.name", "local")
            .put("discovery.type", "single-node")
            .put("cluster.routing.allocation.disk.threshold_enabled", false);
        for (int i = 3; i < arguments.length; i++) {
            String[] setting = arguments[i].split("=", 2);
            settings.put(setting[0], setting[1]);
        }

        List<Class<? extends Plugin>> plugins = new ArrayList<>();
        for (String name : PLUGINS) {
            plugins.add(Class.forName(name).asSubclass(Plugin.class));
        }
        LocalNode node = new LocalNode(settings.build(), plugins);
        CountDownLatch closed = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> close(node, closed)));
        ProcessHandle.of(Long.parseLong(arguments[2])).ifPresentOrElse(
            parent -> parent.onExit().thenRun(() -> System.exit(0)),
            () -> System.exit(0)
        );
        node.start();

        var address = node.injector().getInstance(HttpServerTransport.class).boundAddress().publishAddress();
        Path fresh = Files.writeString(home.resolve("address.new"), NetworkAddress.format(address.address()));
        Files.move(fresh, home.resolve("address"), StandardCopyOption.ATOMIC_MOVE);
        closed.await();
    }

    private static void close(LocalNode node, CountDownLatch closed) {
        try {
            node.close();
        } catch (Exception problem) {
            System.err.println("could not close cleanly: " + problem);
        }
        closed.countDown();
    }
}
