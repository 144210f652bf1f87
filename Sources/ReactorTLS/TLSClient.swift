#if TLS
import Promises
import Reactor
import ReactorIO

/// The client's side of TLS: settings for connections to any number of servers, and resumable sessions.
///
/// Make one and keep it, because reading the system's authorities takes milliseconds. Any thread may use it.
public final class TLSClient: Sendable {
    let context: TLSContext
    let sessions: SessionStore?

    /// - Throws: a `TLSError` with the cause `configuration`.
    public init(_ configuration: TLSConfiguration = TLSConfiguration()) throws(TLSError) {
        context = try TLSContext(configuration, .client)
        sessions = configuration.resumesSessions ? SessionStore() : nil
    }

    func filter(for connection: Connection, name: String?) throws(TLSError) -> TLSFilter {
        if name == nil && context.configuration.serverVerification == .full {
            throw TLSError(.configuration, reason: "the name of the server is needed to verify it")
        }
        let expected = try name.map { (name) throws(TLSError) in try ServerName(name) }
        return try TLSFilter(client: context, name: expected, sessions: sessions, peer: connection.peerAddress)
    }
}

extension Connection {
    /// Starts TLS on this connection, as the client. The promise is fulfilled with this connection after the handshake.
    /// From then on you read and write plain bytes, which the connection encrypts.
    ///
    /// Use this for protocols that begin in plain text (STARTTLS), and `connect(to:tls:)` for others.
    ///
    /// The promise is rejected with
    /// - `TLSError`;
    /// - `ConnectionFilterError.truncated` if the peer closes during the handshake;
    /// - `PromiseError.timedOut` after the configuration's `handshakeTimeout`;
    /// - the errors from `Connection.filter`.
    ///
    /// After a rejection, close the connection. In TLS 1.3 a client's handshake ends before the server checks the
    /// client's certificate: after a refusal, the first read fails.
    /// - Parameters:
    ///   - client: the settings; `nil` to connect in plain text.
    ///   - serverName: the name, or the IP address as text, that the server's certificate must match; an international
    ///     name in its `xn--` form. `nil` is valid only if the configuration does not verify it.
    public func startTLS(
        as client: TLSClient, serverName: String?, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Connection> {
        do throws(TLSError) {
            let filter = try client.filter(for: self, name: serverName)
            return self.filter(filter, timeout: client.context.configuration.handshakeTimeout, file: file, line: line)
        } catch {
            return Promise(error: error, file, line)
        }
    }
}

/// Opens a connection and starts TLS on it.
///
/// ```swift
/// let client = try TLSClient()
/// connect(to: "example.org:443", tls: client).then { connection in
///     connection.write("GET / HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n")
/// }
/// ```
///
/// Rejected with the same errors as `connect(to:timeout:)` or `Connection.startTLS(as:serverName:)`; the connection is
/// then closed.
/// - Parameters:
///   - endpoint: as for `connect(to:timeout:)`: `example.org:443`, `192.0.2.7:443`, `[2001:db8::7]:443`.
///   - client: the settings; `nil` to connect in plain text.
///   - serverName: as for `startTLS`; `nil` for the one in `endpoint`, unless that is a list.
///   - timeout: the limit for opening the connection; the handshake has its own limit.
///   - source: the local address; `nil` lets the kernel choose.
///   - options: socket options, set before the socket connects.
///   - lookup: finds a name's addresses.
@available(*, noasync, message: "an async function has no loop of its own")
public func connect(
    to endpoint: some Endpoint, tls client: TLSClient?, serverName: String? = nil, timeout: Duration? = nil,
    from source: SocketAddress? = nil, options: [SocketSetting] = [],
    lookup: any NameLookup = SystemNameLookup.shared, file: StaticString = #fileID, line: UInt = #line
) -> Promise<Connection> {
    let connecting = connect(
        to: endpoint, timeout: timeout, from: source, options: options, lookup: lookup, file: file, line: line)
    guard let client else { return connecting }
    let name = serverName ?? hostName(in: endpoint._endpoint)
    return connecting.then(
        { connection in
            connection.startTLS(as: client, serverName: name, file: file, line: line)
                // Leaves a second to send the alert.
                .tapError { _ in connection.close(linger: .seconds(1)) }
        }, file: file, line: line)
}

private func hostName(in endpoint: _Endpoint) -> String? {
    let text = endpoint.text
    guard !endpoint.isList, !text.hasPrefix("unix:"), let colon = text.lastIndex(of: ":") else { return nil }
    let host = text[..<colon]
    return host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : String(host)
}
#endif
