import Reactor

/// A link's effect on packets.
///
/// ```swift
/// let link = network.link(client, server)
/// (link.cut, link.loss, link.connects) = (.everyByte, 0.01, .refused)
/// ```
///
/// A new link has no latency: bytes arrive in the sending call, as on a loopback interface. Settings can be changed at
/// any time; packets in transit keep their arrival time. Streams stay complete and in order, so a lost segment is
/// repeated and arrives late. Datagrams are lost, duplicated and reordered.
public struct LinkSettings: Sendable {
    /// The latency, drawn for each packet.
    public var latency: ClosedRange<Duration> = .zero ... .zero {
        didSet {
            func clamped(_ limit: Duration) -> Int64 { min(max(limit.clampedNanoseconds, 0), 1 << 60) }
            delay = clamped(latency.lowerBound)...clamped(latency.upperBound)
        }
    }
    /// The latency in nanoseconds.
    private(set) var delay: ClosedRange<Int64> = 0...0
    /// The bandwidth in bytes per second, each way; `nil` for no limit.
    public var bandwidth: Int?
    /// The division of streams into packets.
    public var cut = StreamCut.whole
    /// The maximum size of a packet in bytes, including 40 bytes of headers.
    public var mtu = 65_535
    /// The probability that a packet is lost.
    public var loss = 0.0
    /// The probability that a datagram arrives twice.
    public var duplication = 0.0
    /// The probability that a datagram arrives after later ones.
    public var reordering = 0.0
    /// The answer to clients that connect from now on.
    public var connects = ConnectAnswer.normal
}

/// A link's division of a stream into packets, which arrive one by one: `link.cut = .everyByte`.
public enum StreamCut: Equatable, Sendable {
    /// One packet per write.
    case whole
    /// One packet per byte.
    case everyByte
    /// Packets of at most this many bytes; Ethernet carries 1448.
    case segments(Int)
    /// Packets of random sizes, half of them tiny.
    case random
}

/// The answer to a client that connects through a link: `link.connects = .refused`.
public enum ConnectAnswer: Equatable, Sendable {
    /// The other host answers.
    case normal
    /// ECONNREFUSED.
    case refused
    /// EHOSTUNREACH.
    case unreachable
    /// No answer: ETIMEDOUT after 127 s.
    case ignored
}
