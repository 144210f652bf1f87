#if TLS
import Promises
import Reactor
import ReactorIO

extension ServeOptions {
    /// Adds TLS to these options: the handler gets each connection after its successful handshake. Connections count as
    /// active from their handshake on. A failed handshake, which any peer can cause, is reported as a handler's error.
    ///
    /// ```swift
    /// let options = ServeOptions(maxConnections: 10_000).tls(server)
    /// listener.serve(options, onError: { error, connection in log("\(connection): \(error)") }) { connection in
    ///     connection.forEachLine { line in connection.write(line + "\n") }
    /// }
    /// ```
    /// - Parameter server: the settings, reloadable while serving; `nil` to serve in plain text.
    public func tls(_ server: TLSServer?) -> ServeOptions {
        guard let server else { return self }
        var options = self
        options.prepare = { [prepare] connection in
            guard let prepare else { return connection.startTLS(as: server) }
            return prepare(connection).then { connection in connection.startTLS(as: server) }
        }
        return options
    }

    /// The default options with TLS: `listener.serve(.tls(server)) { … }`.
    /// - Parameter server: the settings, reloadable while serving; `nil` to serve in plain text.
    public static func tls(_ server: TLSServer?) -> ServeOptions { ServeOptions().tls(server) }
}
#endif
