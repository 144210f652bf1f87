import Promises
import Reactor
import Synchronization

/// The server's side of TLS: settings that all connections of a server share, on any number of loops. They can be replaced
/// while it serves.
///
/// ```swift
/// let server = try TLSServer(
///     TLSConfiguration(identity: TLSIdentity(certificateChainFile: "server.pem", privateKeyFile: "server.key")))
/// listener.serve(tls: server) { connection in
///     connection.forEachLine { line in connection.write(line + "\n") }
/// }
/// ```
public final class TLSServer: Sendable {
    private let current: Mutex<TLSContext>

    /// - Throws: a `TLSError` with the cause `configuration`.
    public init(_ configuration: TLSConfiguration) throws(TLSError) {
        current = Mutex(try TLSContext(configuration, .server))
    }

    /// The settings of handshakes that begin now.
    public var configuration: TLSConfiguration { context.configuration }

    var context: TLSContext { current.withLock { $0 } }

    /// Replaces the settings. Handshakes that begin afterwards use them, on any loop; connections that are open keep theirs.
    /// Clients cannot resume older sessions, and make full handshakes.
    /// - Throws: a `TLSError` with the cause `configuration`; the settings are as before then.
    public func reload(_ configuration: TLSConfiguration) throws(TLSError) {
        let new = try TLSContext(configuration, .server)
        // The old context is released behind the lock.
        let old = current.withLock { current in
            let old = current
            current = new
            return old
        }
        withExtendedLifetime(old) {}
    }

    /// Reads the files of the identity and of the trust roots again, on this thread, and uses what they have now.
    /// - Throws: a `TLSError` with the cause `configuration`, such as for a key that is not that of the certificate because only
    ///   one of the files has been replaced yet; the settings are as before then.
    public func reload() throws(TLSError) {
        var configuration = configuration
        configuration.identity = try configuration.identity?.reloaded()
        try reload(configuration)
    }
}

extension Connection {
    /// Begins TLS on this connection, as the server. The promise is fulfilled with this connection when the handshake has
    /// ended; from then on it reads and writes plain bytes, which are encrypted on their way.
    ///
    /// For protocols that begin in plain text (STARTTLS), and for forms of `serve` without `tls:`. Rejected as
    /// `startTLS(as:serverName:)`; then close the connection.
    public func startTLS(
        as server: TLSServer, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Connection> {
        let context = server.context
        do throws(TLSError) {
            let filter = try TLSFilter(server: context, peer: peerAddress)
            return self.filter(filter, timeout: context.configuration.handshakeTimeout, file: file, line: line)
        } catch {
            return Promise(error: error, file, line)
        }
    }
}
