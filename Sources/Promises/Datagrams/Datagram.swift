import Reactor

/// A datagram: one that has come, or one that is to go.
public struct Datagram: Hashable, Sendable {
    /// What it holds; may be empty.
    public var bytes: [UInt8]
    /// Where it came from, or where it is to go; `nil` for the peer of a connected socket.
    public var address: SocketAddress?
    /// Whether it was longer than the socket's `packetSize`, and the rest is lost.
    public var isTruncated: Bool

    /// A packet of `bytes` for `address`.
    public init<Bytes: Collection>(
        _ bytes: Bytes, to address: SocketAddress? = nil
    ) where Bytes.Element == UInt8 {
        self.bytes = Array(bytes)
        self.address = address
        isTruncated = false
    }

    init(_ bytes: [UInt8], _ origin: DatagramMetadata) {
        self.bytes = bytes
        address = origin.address
        isTruncated = origin.isTruncated
    }
}

/// What is known of a datagram beside its bytes.
public struct DatagramMetadata: Hashable, Sendable {
    /// Where it came from; `nil` if the kernel did not say.
    public let address: SocketAddress?
    /// Whether it was longer than the socket's `packetSize`, and the rest is lost.
    public let isTruncated: Bool
}
