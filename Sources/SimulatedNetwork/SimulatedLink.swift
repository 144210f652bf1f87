import Reactor

/// How a link cuts a stream into packets, which arrive one after the other.
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

/// The answer to a client that connects through a link.
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

/// The link between two hosts of a simulated network, in one direction or in both.
///
/// ```swift
/// network.link(web, database).latency = .milliseconds(3) ... .milliseconds(9)
/// network.link(from: web, to: database).bandwidth = 1_000_000
/// ```
///
/// A new link has no latency: bytes arrive in the call that sends them, as on a loopback interface. Each property can
/// be changed at any time; packets in transit keep their arrival time. Streams lose nothing and stay in order: a lost
/// segment is late by the time of its repetition. Datagrams are lost, duplicated and reordered.
public struct SimulatedLink {
    let ways: [SimulatedWay]

    private func get<Value>(_ path: KeyPath<SimulatedWay, Value>) -> Value { ways[0][keyPath: path] }
    private func set<Value>(_ path: ReferenceWritableKeyPath<SimulatedWay, Value>, _ value: Value) {
        for way in ways { way[keyPath: path] = value }
    }

    /// The latency of a packet, drawn for each. Reading returns the first direction's.
    public var latency: ClosedRange<Duration> {
        get { get(\.latency) }
        nonmutating set { set(\.latency, newValue) }
    }
    /// Bytes per second, each way; `nil` without a limit.
    public var bandwidth: Int? {
        get { get(\.bandwidth) }
        nonmutating set { set(\.bandwidth, newValue.map { max($0, 1) }) }
    }
    /// How streams are cut into packets.
    public var cut: StreamCut {
        get { get(\.cut) }
        nonmutating set { set(\.cut, newValue) }
    }
    /// The size of the largest packet, with 40 bytes for its header.
    public var mtu: Int {
        get { get(\.mtu) }
        nonmutating set { set(\.mtu, newValue) }
    }
    /// The probability that a packet is lost.
    public var loss: Double {
        get { get(\.loss) }
        nonmutating set { set(\.loss, newValue) }
    }
    /// The probability that a datagram arrives twice.
    public var duplication: Double {
        get { get(\.duplication) }
        nonmutating set { set(\.duplication, newValue) }
    }
    /// The probability that a datagram arrives after later ones.
    public var reordering: Double {
        get { get(\.reordering) }
        nonmutating set { set(\.reordering, newValue) }
    }
    /// The answer to clients that connect from now on.
    public var connects: ConnectAnswer {
        get { get(\.connects) }
        nonmutating set { set(\.connects, newValue) }
    }

    /// Holds up every packet, datagrams too, until `release()`.
    public func hold() { for way in ways { way.hold(losesDatagrams: false) } }
    /// Releases the held packets, in order.
    public func release() { for way in ways { way.release() } }
}
