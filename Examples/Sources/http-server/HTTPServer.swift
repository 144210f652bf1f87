import ExampleSupport
import Glibc
import Promises
import Reactor

/// The program: listens, says where, and serves until SIGTERM or SIGINT.
@main
enum HTTPServer {
    static func main() { runProgram("http-server") { try serve(Options(CommandLine.arguments.dropFirst())) } }

    private static func serve(_ options: Options) throws {
        let listener = try Listener.bind(options.address, backlog: 1024, options: [.set(.keepAlive, to: true)])
        let server = Server(options.limits)
        let secure = try TLSSettings(options)
        // The first signal closes idle connections and lets requests be answered; a second signal ends the process at once.
        let served = listener.serve(
            ServeOptions(
                maxConnections: 10_000, memoryLimit: options.limits.memory, stopSignals: [SIGTERM, SIGINT],
                drainTimeout: options.limits.drain,
                onSignal: { signal in
                    if server.isDraining { _exit(128 + signal) }
                    server.isDraining = true
                })
        ) { connection in
            secure.begin(connection).then { connection in Session(connection, of: server).serve() }
        }
        let reload = try secure.reloadAtHangup()
        defer { reload?.cancel() }
        listener.printAddress()
        try hang(served)
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
