#if TLS
import Promises
import Reactor
import ReactorIO
import Synchronization

/// The server's side of TLS: settings for all connections of a server, on any number of loops, replaceable while it
/// serves.
///
/// ```swift
/// let server = try TLSServer(
///     TLSConfiguration(identity: TLSIdentity(certificateChainFile: "server.pem", privateKeyFile: "server.key")))
/// listener.serve(.tls(server)) { connection in
///     connection.forEachLine { line in connection.write(line + "\n") }
/// }
/// ```
public final class TLSServer: Sendable {
    private let current: Mutex<TLSContext>

    /// - Throws: a `TLSError` with the cause `configuration`.
    public init(_ configuration: TLSConfiguration) throws(TLSError) {
        current = Mutex(try TLSContext(configuration, .server))
    }

    /// The settings for new handshakes.
    public var configuration: TLSConfiguration { context.configuration }

    var context: TLSContext { current.withLock { $0 } }

    /// Replaces the settings for handshakes that begin afterwards, on any loop. Open connections keep their settings.
    /// Without `ticketKeys`, older sessions cannot be resumed, and their clients make full handshakes.
    /// - Throws: a `TLSError` with the cause `configuration`; the settings are then unchanged.
    public func reload(_ configuration: TLSConfiguration) throws(TLSError) {
        let new = try TLSContext(configuration, .server)
        // Released outside the lock.
        let old = current.withLock { current in
            let old = current
            current = new
            return old
        }
        withExtendedLifetime(old) {}
    }

    /// Reads the files of the identity and the trust roots again, on this thread, but not those of an
    /// `identityForName`.
    /// - Throws: a `TLSError` with the cause `configuration`, for instance if the key does not match the certificate
    ///   because only one file has been replaced yet. The settings are then unchanged.
    public func reload() throws(TLSError) {
        var isReplaced = false
        while !isReplaced {
            let old = context
            var configuration = old.configuration
            configuration.identity = try configuration.identity?.reloaded()
            let new = try TLSContext(configuration, .server)
            // Repeats if another thread has replaced the settings, starting from the new ones.
            isReplaced = current.withLock { current in
                if current !== old { return false }
                current = new
                return true
            }
        }
    }

    /// Calls `reload()` on this thread at each signal, until the watch is cancelled. The watch does not keep the loop
    /// alive.
    ///
    /// ```swift
    /// try server.reload(atSignal: SIGHUP) { error in log(error.map { "\($0)" } ?? "the certificates are read") }
    /// ```
    /// - Parameters:
    ///   - signal: the number of the signal.
    ///   - report: called after each reload, with the error if the settings are unchanged.
    /// - Returns: the watch.
    /// - Throws: the same `SystemError` as `EventLoop.onSignal`.
    @available(*, noasync, message: "an async function has no loop of its own")
    @discardableResult
    public func reload(
        atSignal signal: CInt, _ report: @escaping (TLSError?) -> Void, file: StaticString = #fileID,
        line: UInt = #line
    ) throws(SystemError) -> EventLoop.Watch {
        let handler = {
            do throws(TLSError) {
                try self.reload()
                report(nil)
            } catch {
                report(error)
            }
        }
        let watch = try EventLoop.current.onSignal(signal, handler, file: file, line: line)
        watch.unref()
        return watch
    }
}

extension Connection {
    /// Starts TLS on this connection, as the server, and otherwise like `startTLS(as:serverName:)`.
    ///
    /// Use this for protocols that begin in plain text (STARTTLS), and in handlers that start TLS themselves. After a
    /// rejection, close the connection.
    public func startTLS(
        as server: TLSServer, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Connection> {
        let context = server.context
        let filter = TLSFilter(server: context, peer: peerAddress)
        return self.filter(filter, timeout: context.configuration.handshakeTimeout, file: file, line: line)
    }
}
#endif
