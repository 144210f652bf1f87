/// The actions that a `ConnectionFilter` asks of its connection. They take effect when the method has returned.
public struct FilterOutput {
    @usableFromInline var sent: [UInt8] = []
    @usableFromInline var delivered: [UInt8] = []
    private(set) var isReady = false
    private(set) var endsInput = false
    private(set) var waitsForInput = false
    private(set) var removesFilter = false
    var error: (any Error)?

    init() {}

    /// Sends bytes to the peer, after earlier ones. If the method also delivers bytes, or a client becomes ready, they
    /// are sent with the next write in this turn, or at the turn's end.
    @inlinable
    public mutating func send(_ bytes: some Collection<UInt8>) { Self.append(bytes, to: &sent) }

    @inlinable
    static func append(_ bytes: some Collection<UInt8>, to all: inout [UInt8]) {
        // Most filters pass one array per call, which then needs no copy.
        if all.isEmpty, let array = bytes as? [UInt8] { all = array } else { all.append(contentsOf: bytes) }
    }

    /// Sends lent bytes to the peer, after earlier ones.
    @inlinable
    public mutating func send(_ bytes: RawSpan) { bytes.withUnsafeBytes { sent.append(contentsOf: $0) } }

    /// Delivers plain bytes to the connection's reads, after earlier ones.
    @inlinable
    public mutating func deliver(_ bytes: some Collection<UInt8>) { Self.append(bytes, to: &delivered) }

    /// Delivers lent bytes to the connection's reads, after earlier ones.
    @inlinable
    public mutating func deliver(_ bytes: RawSpan) { bytes.withUnsafeBytes { delivered.append(contentsOf: $0) } }

    /// Ends the handshake: the promise of `Connection.filter` is fulfilled, and the connection accepts reads and
    /// writes.
    public mutating func becomeReady() { isReady = true }

    /// Ends the plain stream after the delivered bytes, at the peer's end record. Later bytes from the peer are
    /// ignored.
    public mutating func endInput() { endsInput = true }

    /// Defers this `write`, because its bytes need further input first, as in a TLS renegotiation. The connection
    /// reads, and calls `write` again with these bytes after each `receive`. Later writes wait. Has no effect in other
    /// methods.
    ///
    /// Until then, delivered bytes are buffered. The connection fails with `ENOBUFS` at more than 1 MiB of them without
    /// a pending read, or of output that the peer does not accept. If the peer ends its stream first, deferred writes
    /// are rejected with `EPIPE`, and the connection continues.
    public mutating func waitForInput() { waitsForInput = true }

    /// Ends the filter's work, and a pending handshake. The connection continues without a filter, and may get another.
    /// Deliver all remaining bytes in this call.
    public mutating func removeFilter() {
        isReady = true
        removesFilter = true
    }
}
