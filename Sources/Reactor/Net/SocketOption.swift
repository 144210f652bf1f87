import CLinux
import Glibc

/// A setting of a socket, with the type of its value: see socket(7), tcp(7), ip(7), ipv6(7).
///
/// ```swift
/// try connection.set(.keepAliveIdle, to: .seconds(30))
/// let bytes = try connection.value(of: .sendBuffer)
/// let listener = try Listener.bind("0.0.0.0:80", options: [.set(.reusePort, to: true)])
/// ```
///
/// There is none for SO_LINGER: `Connection.close` waits for the peer without holding the thread, which that option would,
/// and `abort` resets.
public struct SocketOption<Value: Sendable>: Sendable {
    /// The kernel's name, for example `TCP_NODELAY`.
    public let name: String
    let level: CInt
    let number: CInt
    /// `nil` for a value that the option cannot have.
    let encode: @Sendable (Value) -> CInt?
    let decode: @Sendable (CInt) -> Value
    /// What values it takes, for people.
    let range: String
}

/// An option and the value that it is to have, for the `options` of what makes a socket: `.set(.reusePort, to: true)`.
public struct SocketSetting: Sendable, CustomStringConvertible {
    /// `SO_REUSEPORT: true`
    public let description: String
    let level: CInt
    let number: CInt
    let value: CInt?
    let range: String

    /// `option` is to have `value`. One that it cannot have is refused, with `EINVAL`, when the socket is made.
    public static func set<Value>(_ option: SocketOption<Value>, to value: Value) -> SocketSetting {
        SocketSetting(
            description: "\(option.name): \(value)", level: option.level, number: option.number,
            value: option.encode(value), range: option.range)
    }

    /// Whether it says what every new connection decides by itself, and so must be said again afterwards.
    package var isNoDelay: Bool { level == CInt(IPPROTO_TCP) && number == TCP_NODELAY }
}

extension SocketOption where Value == Bool {
    /// Small writes go out at once; every connection starts so. TCP_NODELAY.
    public static var noDelay: Self { flag("TCP_NODELAY", CInt(IPPROTO_TCP), TCP_NODELAY) }
    /// The kernel probes a peer that is silent, and fails the connection if it stays so. SO_KEEPALIVE.
    public static var keepAlive: Self { flag("SO_KEEPALIVE", SOL_SOCKET, SO_KEEPALIVE) }
    /// A port may be bound while connections of a predecessor still leave; every TCP listener has it. SO_REUSEADDR.
    public static var reuseAddress: Self { flag("SO_REUSEADDR", SOL_SOCKET, SO_REUSEADDR) }
    /// Several sockets may be bound to one address, and the kernel spreads what comes. SO_REUSEPORT.
    public static var reusePort: Self { flag("SO_REUSEPORT", SOL_SOCKET, SO_REUSEPORT) }
    /// An IPv6 socket leaves IPv4 alone; every IPv6 listener has it. Before binding only. IPV6_V6ONLY.
    public static var ipv6Only: Self { flag("IPV6_V6ONLY", CInt(IPPROTO_IPV6), IPV6_V6ONLY) }
    /// Datagrams may be sent to broadcast addresses. SO_BROADCAST.
    public static var broadcast: Self { flag("SO_BROADCAST", SOL_SOCKET, SO_BROADCAST) }
    /// IPv4 multicast that this socket sends is seen on this machine too; the kernel's default. IP_MULTICAST_LOOP.
    public static var multicastLoop: Self { flag("IP_MULTICAST_LOOP", CInt(IPPROTO_IP), IP_MULTICAST_LOOP) }

    private static func flag(_ name: String, _ level: CInt, _ number: CInt) -> Self {
        Self(
            name: name, level: level, number: number, encode: { $0 ? 1 : 0 }, decode: { $0 != 0 },
            range: "true or false")
    }
}

extension SocketOption where Value == Int {
    /// How many bytes the kernel keeps of what has come: 1 at least. It doubles the number for its own bookkeeping, cuts it
    /// to net.core.rmem_max, and gives back what it has made of it. SO_RCVBUF.
    public static var receiveBuffer: Self { count("SO_RCVBUF", SOL_SOCKET, SO_RCVBUF, 1...Int(CInt.max / 2)) }
    /// The same for what is to go, and net.core.wmem_max. SO_SNDBUF.
    public static var sendBuffer: Self { count("SO_SNDBUF", SOL_SOCKET, SO_SNDBUF, 1...Int(CInt.max / 2)) }
    /// After how many probes without an answer a connection fails: 1 to 127. TCP_KEEPCNT.
    public static var keepAliveCount: Self { count("TCP_KEEPCNT", CInt(IPPROTO_TCP), TCP_KEEPCNT, 1...127) }
    /// A connection is writable while fewer bytes than this have not been sent yet: less waits in the kernel, where it can
    /// not be taken back. 0 means no limit. TCP_NOTSENT_LOWAT.
    public static var notSentLowWater: Self {
        count("TCP_NOTSENT_LOWAT", CInt(IPPROTO_TCP), TCP_NOTSENT_LOWAT, 0...Int(CInt.max))
    }
    /// How many routers IPv4 multicast may pass: 0 to 255. IP_MULTICAST_TTL.
    public static var multicastTTL: Self {
        count("IP_MULTICAST_TTL", CInt(IPPROTO_IP), IP_MULTICAST_TTL, 0...255)
    }

    private static func count(_ name: String, _ level: CInt, _ number: CInt, _ range: ClosedRange<Int>) -> Self {
        Self(
            name: name, level: level, number: number, encode: { range.contains($0) ? CInt($0) : nil },
            decode: { Int($0) }, range: "\(range.lowerBound) to \(range.upperBound)")
    }
}

extension SocketOption where Value == Duration {
    /// How long a peer is silent before the first probe, in seconds, rounded up: 1 to 32,767. TCP_KEEPIDLE.
    public static var keepAliveIdle: Self { seconds("TCP_KEEPIDLE", TCP_KEEPIDLE) }
    /// The time between probes, in seconds, rounded up: 1 to 32,767. TCP_KEEPINTVL.
    public static var keepAliveInterval: Self { seconds("TCP_KEEPINTVL", TCP_KEEPINTVL) }
    /// How long what was sent may remain without an answer before the connection fails with `ETIMEDOUT`, in milliseconds, rounded
    /// up; zero means as long as the kernel sees fit, some 15 minutes. TCP_USER_TIMEOUT.
    public static var userTimeout: Self {
        let range = 0...Int64(CInt.max)
        return Self(
            name: "TCP_USER_TIMEOUT", level: CInt(IPPROTO_TCP), number: TCP_USER_TIMEOUT,
            encode: { units($0, of: 1_000_000, range) }, decode: { .milliseconds(Int64($0)) },
            range: "0 to \(range.upperBound) milliseconds")
    }

    private static func seconds(_ name: String, _ number: CInt) -> Self {
        let range: ClosedRange<Int64> = 1...32767
        return Self(
            name: name, level: CInt(IPPROTO_TCP), number: number,
            encode: { units($0, of: 1_000_000_000, range) }, decode: { .seconds(Int64($0)) },
            range: "1 to 32767 seconds")
    }

    /// `duration` in units of so many nanoseconds, rounded up; `nil` outside `range`.
    private static func units(_ duration: Duration, of unit: Int64, _ range: ClosedRange<Int64>) -> CInt? {
        guard duration >= .zero, duration <= .seconds(range.upperBound) else { return nil }
        let nanoseconds = duration.clampedNanoseconds
        let count = nanoseconds / unit + (nanoseconds % unit == 0 ? 0 : 1)
        return range.contains(count) ? CInt(count) : nil
    }
}

extension Socket {
    /// - Throws: `SystemError` that names option and value: `EINVAL` for a value that the option cannot have, and what the kernel
    ///   reports.
    package func apply(_ setting: SocketSetting) throws(SystemError) {
        guard let value = setting.value else {
            throw SystemError(.setSocketOption, EINVAL, detail: "\(setting), which takes \(setting.range)")
        }
        _ = try kernel.setSocketOption(fd, setting.level, setting.number, value)
            .orThrow(.setSocketOption, setting.description)
    }

    package func apply(_ settings: [SocketSetting]) throws(SystemError) {
        for setting in settings { try apply(setting) }
    }

    package func value<Value>(of option: SocketOption<Value>) throws(SystemError) -> Value {
        var value: CInt = 0
        _ = try kernel.getSocketOption(fd, option.level, option.number, &value)
            .orThrow(.getSocketOption, option.name)
        return option.decode(value)
    }
}
