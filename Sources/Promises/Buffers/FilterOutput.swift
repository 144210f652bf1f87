/// The actions of a `ConnectionFilter`: what a call of one of its methods makes the connection do. They take effect when the
/// method has returned.
public struct FilterOutput {
    /// The bytes to send.
    @usableFromInline var sent: [UInt8] = []
    /// The bytes for the reads of the connection.
    @usableFromInline var delivered: [UInt8] = []
    private(set) var isReady = false
    private(set) var endsInput = false
    private(set) var waitsForInput = false
    private(set) var removesFilter = false
    /// The error that the method has thrown.
    var error: (any Error)?

    init() {}

    /// Sends bytes to the peer, behind those of earlier calls.
    ///
    /// Where the method also delivers bytes, or a client becomes ready, these leave with the first write that follows in this
    /// turn, and at its end at the latest.
    /// - Parameter bytes: the bytes, which are copied.
    @inlinable
    public mutating func send(_ bytes: some Collection<UInt8>) {
        // The usual filter sends one array in a call, which need not be copied.
        if sent.isEmpty, let array = bytes as? [UInt8] { sent = array } else { sent.append(contentsOf: bytes) }
    }

    /// Sends lent bytes to the peer, behind those of earlier calls.
    /// - Parameter bytes: the bytes, which are copied.
    @inlinable
    public mutating func send(_ bytes: RawSpan) { bytes.withUnsafeBytes { sent.append(contentsOf: $0) } }

    /// Delivers plain bytes to the reads of the connection, behind those of earlier calls.
    /// - Parameter bytes: the bytes, which are copied.
    @inlinable
    public mutating func deliver(_ bytes: some Collection<UInt8>) {
        if delivered.isEmpty, let array = bytes as? [UInt8] {
            delivered = array
        } else {
            delivered.append(contentsOf: bytes)
        }
    }

    /// Delivers lent bytes to the reads of the connection, behind those of earlier calls.
    /// - Parameter bytes: the bytes, which are copied.
    @inlinable
    public mutating func deliver(_ bytes: RawSpan) { bytes.withUnsafeBytes { delivered.append(contentsOf: $0) } }

    /// Ends the handshake: the promise of `Connection.filter` is fulfilled, and the connection takes reads and writes.
    public mutating func becomeReady() { isReady = true }

    /// Ends the plain stream behind the bytes that have been delivered: the end record of the peer has been received. Bytes that
    /// the peer sends behind it are ignored.
    public mutating func endInput() { endsInput = true }

    /// Defers this `write`: its bytes can only be sent after further input has been received, as during a TLS
    /// renegotiation. The connection reads, even if none of its reads waits, and calls `write` again with these bytes after
    /// each `receive`; later writes wait behind them. Without effect in other methods.
    ///
    /// Plain bytes that are delivered meanwhile are buffered. The connection fails with `ENOBUFS` when there is more than
    /// 1 MiB of them and no read waits, or more than 1 MiB of output that the peer does not take. If the peer ends its stream
    /// before, deferred writes are rejected with `EPIPE`, and the connection continues.
    public mutating func waitForInput() { waitsForInput = true }

    /// Ends the work of the filter, and the handshake if that has not ended: the connection becomes one without a filter, and
    /// may be given another. What was received and not delivered must be delivered in this call.
    public mutating func removeFilter() {
        isReady = true
        removesFilter = true
    }
}
