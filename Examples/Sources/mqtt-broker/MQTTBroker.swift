import ExampleSupport
import Glibc
import Promises
import Reactor
import ReactorIO

/// The program: listens, says where, and serves on two loops until SIGTERM or SIGINT.
@main
enum MQTTBroker {
    static func main() { runProgram("mqtt-broker") { arguments in try serve(Options(arguments)) } }

    private static func serve(_ options: Options) throws {
        let limits = options.limits
        let listener = try Listener.bind(options.address)
        let group = try LoopGroup(loops: 2, name: "broker")
        let clients = LoopLocal { LocalClients() }
        let broker = Broker(on: Array(group), clients, retainedLimit: limits.retained)
        // The first signal closes the connections that wait for a packet; a second signal, or the limit, cancels the rest.
        let serving = ServeOptions(
            maxConnections: limits.clients, memoryLimit: limits.memory, stopSignals: [SIGTERM, SIGINT],
            drainTimeout: limits.drain)
        let served = listener.serveAsync(on: group, serving) { connection in
            let local = clients.value(for: connection)
            try await Session(connection: connection, clients: local, broker: broker, limits: limits).run()
        }
        listener.printAddress()
        try hang(served)
        group.stop()
        group.join()
    }
}
