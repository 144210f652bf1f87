/// A layer between a connection's bytes and its users: TLS, compression, a proxy's header. See `Connection.filter`.
///
/// A filter is a state machine without I/O. The connection calls its methods with events. Each method puts its actions
/// into a `FilterOutput`, valid during the call: bytes to send to the peer, plain bytes for the connection's reads, and
/// changes of state.
///
/// ```swift
/// /// The line "PROXY TCP4 client server port port" or "PROXY UNKNOWN", with which a proxy begins. Then the filter leaves.
/// struct ProxyHeader: ConnectionFilter {
///     struct Malformed: Error {}
///
///     let found: (SocketAddress) -> Void
///     var header: [UInt8] = []
///
///     // Does not become ready: the header comes first.
///     func begin(_ output: inout FilterOutput) {}
///
///     mutating func receive(_ bytes: RawSpan, _ output: inout FilterOutput) throws {
///         bytes.withUnsafeBytes { header += $0 }
///         guard let end = header.firstIndex(of: 10) else {
///             if header.count > 107 { throw Malformed() }
///             return
///         }
///         let words = String(decoding: header[..<end], as: UTF8.self).split { $0.isWhitespace }
///         // A proxy that checks whether the server lives sends UNKNOWN: the client is the proxy itself.
///         if words.prefix(2) != ["PROXY", "UNKNOWN"] {
///             guard words.count == 6, words[0] == "PROXY", let port = UInt16(words[4]),
///                 let client = SocketAddress(host: String(words[2]), port: port)
///             else { throw Malformed() }
///             found(client)
///         }
///         output.deliver(header[(end + 1)...])
///         output.removeFilter()
///     }
///
///     func write(_ bytes: RawSpan, _ output: inout FilterOutput) { output.send(bytes) }
/// }
/// ```
///
/// The methods are called on the loop's thread, one at a time, and must not use the connection or turn the loop. If a
/// method does, writes wait and nothing is read until it returns. A close drops the bytes that the method delivers, and
/// sends its output before the end record. An abort drops both.
///
/// **Reading.** The kernel is read only for a pending read, during the handshake, and while a write needs input
/// (`FilterOutput.waitForInput`). Reading stops while 64 KiB of output that belongs to no write, such as answers to
/// pings, wait for the kernel, so a peer that only sends cannot fill the memory. A filter that needs input still gets
/// it, because its peer may read nothing before sending it. With more than 1 MiB of such output, or 1 MiB of plain
/// bytes without a read, the connection fails with `ENOBUFS` instead of waiting for ever.
///
/// **Errors.** A thrown error fails the connection. Earlier output, such as an alert, is still sent, then the end of
/// the stream. Pending and later operations are rejected with the error. `read`, `peerGone` and `closed`, whose errors
/// are `SystemError`s, report `EPROTO` with the error as the detail.
public protocol ConnectionFilter {
    /// Called when the filter has been installed. A filter with a handshake sends its first message, or waits for the
    /// peer's first message. The default calls `output.becomeReady()`.
    mutating func begin(_ output: inout FilterOutput) throws

    /// Called with bytes from the kernel: one or more, in pieces of any size, lent for the call.
    mutating func receive(_ bytes: RawSpan, _ output: inout FilterOutput) throws

    /// Called with the plain bytes of each write, lent for the call. The write is fulfilled when the kernel has
    /// accepted the bytes sent in this call and all earlier ones. A filter that needs input first calls
    /// `output.waitForInput()`, and then gets the same bytes again.
    mutating func write(_ bytes: RawSpan, _ output: inout FilterOutput) throws

    /// Called when the user ends the write side, to send the end record: at most once, after the last write, never
    /// during the handshake. The default sends nothing.
    mutating func end(_ output: inout FilterOutput) throws

    /// Called when the peer has ended its side without a prior `output.endInput()`. A filter without end records
    /// returns, unless the stream ends inside a record. The default throws `ConnectionFilterError.truncated`.
    mutating func receiveEnd(_ output: inout FilterOutput) throws

    /// True while the received bytes end inside a record, so that a drain does not treat the connection as idle. False
    /// by default.
    var isInsideRecord: Bool { get }

    /// The memory, in bytes of capacity, that the filter keeps for its peer between calls, such as the beginning of a
    /// record. Counts towards `ServeOptions.memoryLimit`. Zero by default.
    var heldBytes: Int { get }
}

extension ConnectionFilter {
    /// Becomes ready immediately.
    public mutating func begin(_ output: inout FilterOutput) throws { output.becomeReady() }

    /// Sends nothing.
    public mutating func end(_ output: inout FilterOutput) throws {}

    /// Throws, because the end record is missing.
    public mutating func receiveEnd(_ output: inout FilterOutput) throws { throw ConnectionFilterError.truncated }

    /// False.
    public var isInsideRecord: Bool { false }

    /// Zero.
    public var heldBytes: Int { 0 }
}

/// An error that the connection finds, not its filter.
public enum ConnectionFilterError: Error, Hashable, Sendable {
    /// The peer has ended its side without an end record. An attacker may have cut off the stream.
    case truncated
}

extension ConnectionFilterError: CustomStringConvertible {
    /// A sentence for people.
    public var description: String { "the stream was cut off before its end record" }
}
