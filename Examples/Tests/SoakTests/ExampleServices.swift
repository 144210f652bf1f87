import Promises
import Reactor
import ReactorHTTP
import ReactorIO
import SimulatedNetwork
import http_server
import kv_server
import mqtt_broker

/// The services of three examples, each on its usual port: kv-server, mqtt-broker and http-server.
final class ExampleServices: SoakServices {
    private let maxConnections: Int

    override init(_ round: SoakRound) {
        // More than clients subscribe at once: each of those also publishes, on another connection.
        maxConnections = 6 + round.dice.below(8)
        super.init(round)
    }

    override func listen() throws {
        let keys = add(try Listener.bind("0.0.0.0:6379"))
        let topics = add(try Listener.bind("0.0.0.0:1883"))
        let pages = add(try Listener.bind("0.0.0.0:80"))
        let serving = ServeOptions(maxConnections: maxConnections)

        var limits = kv_server.Limits()
        limits.idle = .seconds(30)
        let server = kv_server.Server(limits: limits)
        endlessTimers += 1
        keys.serve(serving, onError: { _, _ in }) { [self] connection in
            counted(kv_server.Session(round.note(connection, isOfServer: true), of: server).serve())
        }.cauterize()

        let clients = LoopLocal { LocalClients() }
        let brokerLimits = mqtt_broker.Limits()
        let broker = Broker(on: [EventLoop.current.remote], clients, retainedLimit: 1 << 20)
        topics.serveAsync(serving, onError: { _, _ in }) { connection in
            let local = clients.value(for: connection)
            try await mqtt_broker.Session(connection: connection, clients: local, broker: broker, limits: brokerLimits)
                .run()
        }.cauterize()

        let options = try http_server.Options(["--idle-timeout", "30", "--slowness", "0.7"])
        pages.serveHTTP(options.http, serving: serving, onError: { _, _ in }) { request in
            HTTPServer.respond(to: request, options, nil)
        }.cauterize()
    }
}
