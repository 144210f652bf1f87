import Promises
import Reactor

/// The server: listeners, the connections they brought, and what becomes of them.
final class EchoServer {
    private let options: Options
    /// On the sockets that the service manager has passed, and on those of the command line.
    private let inherited, bound: Listener?
    private var connections: [ObjectIdentifier: Connection] = [:]
    private var finished = Statistics()
    private(set) var isDraining = false

    /// Takes the sockets that the service manager has passed, and binds every address, or throws and leaves none bound.
    init(_ options: Options) throws {
        self.options = options
        inherited = try Listener.inherited()
        var addresses = options.addresses
        if addresses.isEmpty && inherited == nil { addresses = [Options.defaultAddress] }
        bound = addresses.isEmpty ? nil : try Listener.bind(addresses)
    }

    /// Where it listens, first what it was passed.
    var addresses: [SocketAddress] { [inherited, bound].flatMap { $0?.localAddresses ?? [] } }

    var maxConnections: Int { options.maxConnections }

    /// The counts as they stand, those of open connections included.
    var statistics: Statistics {
        connections.values.reduce(into: finished) { $0.bytes += $1.bytesReceived }
    }

    /// Serves every address; fulfilled when all of them are closed and the last connection is done.
    func serve() -> Promise<Void> {
        let listeners = [inherited, bound].compactMap(\.self)
        return when(
            fulfilled: listeners.map { listener in
                listener.serve(maxConnections: maxConnections, onError: { _, _ in self.finished.noteFailure() }, serve)
            })
    }

    /// One connection from its first byte to its last. The listener closes it then.
    private func serve(_ connection: Connection) -> Promise<Void> {
        begin(connection)
        return echo(connection).ensure { self.end(connection) }
    }

    private func begin(_ connection: Connection) {
        connection.idleTimeout = options.idleTimeout
        connections[ObjectIdentifier(connection)] = connection
        finished.begin()
    }

    private func end(_ connection: Connection) {
        connections[ObjectIdentifier(connection)] = nil
        finished.end(connection.bytesReceived)
    }

    /// Stops accepting, lets connections finish for as long as the drain timeout, and resets those that are left.
    func drain() {
        isDraining = true
        // Who waits at a socket of the service manager, which keeps it, is for the process that comes after this one.
        inherited?.close()
        bound?.close(drain: true)
        after(options.drainTimeout).done {
            for connection in self.connections.values { connection.abort() }
        }
    }
}
