import Reactor

/// A datagram that was received or is to be sent.
public struct Datagram: Hashable, Sendable {
    /// The payload, which may be empty.
    public var bytes: [UInt8]
    /// The sender of a received datagram, or the destination of one to send; `nil` for the peer of a connected socket.
    public var address: SocketAddress?
    /// `true` if the datagram was longer than the socket's `packetSize`, so that its end was lost.
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

/// The properties of a received datagram besides its bytes.
public struct DatagramMetadata: Hashable, Sendable {
    /// The sender; `nil` if the kernel did not report it.
    public let address: SocketAddress?
    /// `true` if the datagram was longer than the socket's `packetSize`, so that its end was lost.
    public let isTruncated: Bool
}
