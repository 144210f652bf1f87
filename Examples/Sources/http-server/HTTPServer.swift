import ExampleSupport
import Glibc
import Promises
import Reactor

/// The program: listens, says where, and serves until SIGTERM or SIGINT.
@main
enum HTTPServer {
    static func main() { runServer("http-server") { try serve(Options(CommandLine.arguments.dropFirst())) } }

    private static func serve(_ options: Options) throws {
        let listener = try Listener.bind(options.address, backlog: 1024, options: [.set(.keepAlive, to: true)])
        let server = Server(options.limits)
        let served = listener.serve(maxConnections: 10_000) { connection in
            Session(connection, of: server).serve()
        }
        try drainAtSignals(listener, server)
        listener.printAddress()
        try hang(served)
    }

    /// The first signal closes idle connections and lets requests be answered; a second signal ends the process at once.
    private static func drainAtSignals(_ listener: Listener, _ server: Server) throws {
        for signal in [SIGTERM, SIGINT] {
            try EventLoop.current.onSignal(signal) {
                if server.isDraining { _exit(128 + signal) }
                server.isDraining = true
                listener.drain(deadline: server.limits.drain)
            }.unref()
        }
    }
}

/// What all sessions share. Everything happens on one thread, so nothing is locked.
final class Server {
    let limits: Limits
    let date = DateField()
    /// The answer to a request that is under way is the last one of its connection.
    var isDraining = false

    init(_ limits: Limits) { self.limits = limits }

    /// The answer to a request that is not understood. Its connection ends, since where the next request begins is unknown.
    func refusal(_ status: Status) -> [UInt8] { Answer(status, .known(0), .close, date: date.bytes).bytes }
}
