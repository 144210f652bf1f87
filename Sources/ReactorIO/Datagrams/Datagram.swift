import Reactor

/// A received datagram, or one to send.
public struct Datagram: Hashable, Sendable {
    /// The payload, which may be empty.
    public var bytes: [UInt8]
    /// The sender of a received datagram, or the destination of one to send; `nil` for the peer of a connected socket.
    public var address: SocketAddress?
    /// True when the datagram was longer than the socket's `packetSize`, so that the rest was lost.
    public var isTruncated: Bool

    /// Makes a datagram to send.
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

/// A received datagram's properties, except its bytes.
public struct DatagramMetadata: Hashable, Sendable {
    /// The sender; `nil` if the kernel did not report it.
    public let address: SocketAddress?
    /// True when the datagram was longer than the socket's `packetSize`, so that the rest was lost.
    public let isTruncated: Bool
}
