import ExampleSupport
import Glibc
import Promises
import Reactor

/// The program: `mqtt-broker [--listen HOST:PORT] [--queue-limit BYTES]`. Listens, says where, and serves on two loops until
/// SIGTERM or SIGINT.
@main
enum MQTTBroker {
    static func main() {
        runProgram("mqtt-broker") {
            var address = try SocketAddress("127.0.0.1:1883")
            var queueLimit = 1 << 20
            for option in try CommandLineOption.all(in: CommandLine.arguments.dropFirst()) {
                switch option.name {
                case "--listen": address = try option.address()
                case "--queue-limit": queueLimit = try option.bytes()
                default: throw option.unknown
                }
            }
            try serve(at: address, queueLimit)
        }
    }

    /// - Parameter queueLimit: bytes that may wait for a client. A client for which more would wait is disconnected.
    private static func serve(at address: SocketAddress, _ queueLimit: Int) throws {
        let listener = try Listener.bind(address)
        let group = try LoopGroup(loops: 2, name: "broker")
        let clients = LoopLocal { LocalClients() }
        let broker = Broker(on: group, clients)
        // The first signal closes the connections that wait for a packet; a second signal, or ten seconds, cancels the rest.
        let options = ServeOptions(maxConnections: 10_000, stopSignals: [SIGTERM, SIGINT], drainTimeout: .seconds(10))
        let served = listener.serve(on: group, options) { connection in
            connection.writeQueueLimit = queueLimit
            try await Session(connection: connection, clients: clients.value(for: connection), broker: broker).run()
        }
        listener.printAddress()
        try hang(served)
        group.stop()
        group.join()
    }
}
