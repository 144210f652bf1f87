import Reactor

/// What a link does to packets.
///
/// ```swift
/// let link = network.link(client, server)
/// (link.cut, link.loss, link.connects) = (.everyByte, 0.01, .refused)
/// ```
///
/// A new link has no latency: bytes arrive in the call that sends them, as on a loopback interface. Each setting can be
/// changed at any time; packets in transit keep their arrival time. Streams lose nothing and stay in order: a lost
/// segment is late by the time of its repetition. Datagrams are lost, duplicated and reordered.
public struct LinkSettings: Sendable {
    /// The latency of a packet, drawn for each.
    public var latency: ClosedRange<Duration> = .zero ... .zero {
        didSet {
            func clamped(_ limit: Duration) -> Int64 { min(max(limit.clampedNanoseconds, 0), 1 << 60) }
            delay = clamped(latency.lowerBound)...clamped(latency.upperBound)
        }
    }
    /// The latency in nanoseconds.
    private(set) var delay: ClosedRange<Int64> = 0...0
    /// Bytes per second, each way; `nil` without a limit.
    public var bandwidth: Int?
    /// How streams are cut into packets.
    public var cut = StreamCut.whole
    /// The size of the largest packet, with 40 bytes for its header.
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

/// How a link cuts a stream into packets, which arrive one after the other: `link.cut = .everyByte`.
public enum StreamCut: Equatable, Sendable {
    /// Each write arrives as one packet.
    case whole
    /// Each byte arrives separately.
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
