/// A layer between a connection's bytes and its users: TLS, compression, a proxy's header. Installed by
/// `Connection.filter`.
///
/// A filter is a state machine that performs no I/O. The connection calls its methods with events, and each puts its
/// actions into a `FilterOutput`, which is valid during the call: bytes to send to the peer, plain bytes to deliver to
/// the connection's reads, and changes of state.
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
/// The methods are called on the loop's thread, one at a time. They must not use the connection. If one does, or turns
/// the loop: a write waits until the method has returned, and nothing is read meanwhile. If the method closes the
/// connection, the bytes that it delivers are dropped, and those that it sends leave before the end record; if it
/// aborts the connection, both are dropped.
///
/// **Reading.** Nothing is read from the kernel without a pending read, except during the handshake and while the
/// filter needs input to write (`FilterOutput.waitForInput`). Nothing is read either while the kernel has not taken 64
/// KiB of output that belongs to no write, such as answers to pings: a peer that sends and never reads cannot fill the
/// memory.
///
/// A filter that needs input gets it nevertheless, since its peer may read only after it has sent that input. The
/// connection then fails with `ENOBUFS` instead of waiting forever: beyond 1 MiB of such output, and beyond 1 MiB of
/// plain bytes that no read waits for.
///
/// **Errors.** A thrown error fails the connection: earlier output, such as an alert, still leaves, and the end follows
/// it. Pending and later operations are rejected with that error, except those whose errors are always `SystemError`s:
/// `read`, `peerGone` and `closed` report `EPROTO`, with the error as the detail.
public protocol ConnectionFilter {
    /// The filter has been installed. The default calls `output.becomeReady()`; a filter with a handshake sends its
    /// first message, or waits for the peer's.
    mutating func begin(_ output: inout FilterOutput) throws

    /// Bytes have been read from the kernel: at least one, in pieces of any size. The span is lent for the call.
    mutating func receive(_ bytes: RawSpan, _ output: inout FilterOutput) throws

    /// Called with the plain bytes of each write, which are lent for the call. The write is fulfilled when the kernel
    /// has taken the bytes sent in this call, and everything queued before; if nothing is sent, when earlier writes are.
    ///
    /// A filter that must receive before it can send the bytes calls `output.waitForInput()` instead, and will be
    /// called with the same bytes again.
    mutating func write(_ bytes: RawSpan, _ output: inout FilterOutput) throws

    /// The user ends the write side, by `shutdownWrite` or `close`: send the end record. Called at most once, after the
    /// last write, and not during the handshake. The default sends nothing.
    mutating func end(_ output: inout FilterOutput) throws

    /// The peer has ended its side of the descriptor, and `output.endInput()` has not been called. A filter without end
    /// records returns, if it is not inside a record; the default throws `ConnectionFilterError.truncated`.
    mutating func receiveEnd(_ output: inout FilterOutput) throws

    /// `true` while received bytes do not make a whole record yet. Such a connection is not idle when its listener
    /// drains. False by default.
    var isInsideRecord: Bool { get }

    /// The memory, in bytes, that the filter takes for its peer beyond a call, such as the beginning of a record: by
    /// capacity, not by length. Read after each call; it counts in `ServeOptions.memoryLimit`. Zero by default.
    var heldBytes: Int { get }
}

extension ConnectionFilter {
    /// Becomes ready immediately.
    public mutating func begin(_ output: inout FilterOutput) throws { output.becomeReady() }

    /// Sends nothing.
    public mutating func end(_ output: inout FilterOutput) throws {}

    /// The filter needs an end record, which is missing.
    public mutating func receiveEnd(_ output: inout FilterOutput) throws { throw ConnectionFilterError.truncated }

    /// False.
    public var isInsideRecord: Bool { false }

    /// Zero.
    public var heldBytes: Int { 0 }
}

/// An error found by the connection, not by its filter.
public enum ConnectionFilterError: Error, Hashable, Sendable {
    /// The peer has ended its side of the descriptor without an end record: an attacker may have cut the stream off.
    case truncated
}

extension ConnectionFilterError: CustomStringConvertible {
    /// A sentence for people.
    public var description: String { "the stream was cut off before its end record" }
}
