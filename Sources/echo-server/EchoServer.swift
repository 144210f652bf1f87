import Promises
import Reactor

/// The server: listeners, the connections they brought, and what becomes of them.
final class EchoServer {
    private let options: Options
    private let listeners: [Listener]
    private var connections: [ObjectIdentifier: Connection] = [:]
    private(set) var statistics = Statistics()

    /// Binds every address, or throws and leaves none bound.
    init(_ options: Options) throws {
        self.options = options
        listeners = try options.addresses.map { try Listener.bind($0) }
    }

    var addresses: [SocketAddress] { listeners.map(\.localAddress) }
    var activeConnections: Int { connections.count }

    /// Serves every listener; fulfilled when all of them are closed and the last connection is done.
    func serve() -> Promise<Void> {
        when(fulfilled: listeners.map { $0.serve(maxConnections: options.maxConnections, serve) })
    }

    /// One connection from its first byte to its last.
    private func serve(_ connection: Connection) -> Promise<Void> {
        begin(connection)
        return echo(connection)
            .tap { self.end(connection, $0) }
            .ensure { connection.close() }
    }

    /// Echoes until the peer ends its side: recursion that runs in constant memory.
    private func echo(_ connection: Connection) -> Promise<Void> {
        connection.read().then { outcome -> Promise<Void> in
            switch outcome {
            case .bytes(let bytes):
                self.statistics.bytes += bytes.count
                return connection.write(bytes).then { self.echo(connection) }
            case .end:
                return .value
            case .failed(let error):
                return Promise(error: error)
            }
        }
    }

    private func begin(_ connection: Connection) {
        connection.idleTimeout = options.idleTimeout
        connections[ObjectIdentifier(connection)] = connection
        statistics.begin(connections.count)
    }

    private func end(_ connection: Connection, _ result: Result<Void, any Error>) {
        connections[ObjectIdentifier(connection)] = nil
        if case .failure = result { statistics.failures += 1 }
    }

    /// Stops accepting, lets connections finish for as long as the drain timeout, and resets those that are left.
    func drain() {
        for listener in listeners { listener.close(drain: true) }
        after(options.drainTimeout).done {
            for connection in self.connections.values { connection.abort() }
        }
    }
}
