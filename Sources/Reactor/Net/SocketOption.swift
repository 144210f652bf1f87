import CLinux
import Glibc

/// A socket option with the type of its value: see socket(7), tcp(7), ip(7), ipv6(7).
///
/// ```swift
/// try connection.set(.keepAliveIdle, to: .seconds(30))
/// let bytes = try connection.value(of: .sendBuffer)
/// let listener = try Listener.bind("0.0.0.0:80", options: [.set(.reusePort, to: true)])
/// ```
///
/// There is no option for SO_LINGER: that option would block the thread. `Connection.close` waits for the peer without
/// blocking, and `abort` sends a reset.
public struct SocketOption<Value: Sendable>: Sendable {
    /// The kernel's name, for example `TCP_NODELAY`.
    package let name: String
    let level: CInt
    let number: CInt
    /// Returns `nil` for a value that the option cannot have.
    let encode: @Sendable (Value) -> CInt?
    let decode: @Sendable (CInt) -> Value
    /// The range of valid values, as text for error messages.
    let range: String
}

/// An option with a value, for the `options` argument of functions that open a socket: `.set(.reusePort, to: true)`.
public struct SocketSetting: Sendable, CustomStringConvertible {
    /// `SO_REUSEPORT: true`
    public let description: String
    let level: CInt
    let number: CInt
    let value: CInt?
    let range: String

    /// Pairs an option with a value, to be set when the socket is opened.
    /// - Parameters:
    ///   - option: the option.
    ///   - value: its value. An invalid one is refused, with `EINVAL`, when the socket is opened.
    /// - Returns: the setting.
    public static func set<Value>(_ option: SocketOption<Value>, to value: Value) -> SocketSetting {
        SocketSetting(
            description: "\(option.name): \(value)", level: option.level, number: option.number,
            value: option.encode(value), range: option.range)
    }

    /// Whether this sets TCP_NODELAY. Every new connection sets that option itself, so the setting must be applied
    /// again afterwards.
    package var isNoDelay: Bool { level == CInt(IPPROTO_TCP) && number == TCP_NODELAY }
}

extension SocketOption where Value == Bool {
    /// Small writes are sent at once. Every connection starts with this option. TCP_NODELAY.
    public static var noDelay: Self { flag("TCP_NODELAY", CInt(IPPROTO_TCP), TCP_NODELAY) }
    /// The kernel probes a silent peer, and fails the connection if the peer stays silent. SO_KEEPALIVE.
    public static var keepAlive: Self { flag("SO_KEEPALIVE", SOL_SOCKET, SO_KEEPALIVE) }
    /// Several sockets may be bound to one address, and the kernel spreads clients or datagrams over them.
    /// SO_REUSEPORT.
    public static var reusePort: Self { flag("SO_REUSEPORT", SOL_SOCKET, SO_REUSEPORT) }

    private static func flag(_ name: String, _ level: CInt, _ number: CInt) -> Self {
        Self(
            name: name, level: level, number: number, encode: { $0 ? 1 : 0 }, decode: { $0 != 0 },
            range: "true or false")
    }
}

extension SocketOption where Value == Int {
    /// Any other option whose value is an `int`, by its numbers: `SocketOption(level: SOL_SOCKET, name: SO_BROADCAST)`.
    /// A flag is 0 or 1.
    /// - Parameters:
    ///   - level: `SOL_SOCKET`, or the number of a protocol, such as `CInt(IPPROTO_IP)`.
    ///   - name: the number of the option.
    public init(level: CInt, name: CInt) {
        self.init(
            name: "option \(name) of level \(level)", level: level, number: name, encode: { CInt(exactly: $0) },
            decode: { Int($0) }, range: "\(CInt.min) to \(CInt.max)")
    }

    /// The size of the kernel's receive buffer in bytes, at least 1. The kernel cuts the number to net.core.rmem_max,
    /// doubles it for its own bookkeeping, and returns the result when the option is read. SO_RCVBUF.
    public static var receiveBuffer: Self { count("SO_RCVBUF", SOL_SOCKET, SO_RCVBUF, 1...Int(CInt.max / 2)) }
    /// The size of the kernel's send buffer in bytes, as for `receiveBuffer`, limited by net.core.wmem_max. SO_SNDBUF.
    public static var sendBuffer: Self { count("SO_SNDBUF", SOL_SOCKET, SO_SNDBUF, 1...Int(CInt.max / 2)) }
    /// The number of unanswered probes after which a connection fails: 1 to 127. TCP_KEEPCNT.
    public static var keepAliveCount: Self { count("TCP_KEEPCNT", CInt(IPPROTO_TCP), TCP_KEEPCNT, 1...127) }
    /// A connection is writable while fewer bytes than this number are unsent. A low value keeps fewer bytes in the
    /// kernel, where they cannot be taken back. 0 means no limit. TCP_NOTSENT_LOWAT.
    public static var notSentLowWater: Self {
        count("TCP_NOTSENT_LOWAT", CInt(IPPROTO_TCP), TCP_NOTSENT_LOWAT, 0...Int(CInt.max))
    }

    private static func count(_ name: String, _ level: CInt, _ number: CInt, _ range: ClosedRange<Int>) -> Self {
        Self(
            name: name, level: level, number: number, encode: { range.contains($0) ? CInt($0) : nil },
            decode: { Int($0) }, range: "\(range.lowerBound) to \(range.upperBound)")
    }
}

extension SocketOption where Value == Duration {
    /// The time that a peer is silent before the first probe, in seconds, rounded up: 1 to 32,767. TCP_KEEPIDLE.
    public static var keepAliveIdle: Self { seconds("TCP_KEEPIDLE", TCP_KEEPIDLE) }
    /// The time between probes, in seconds, rounded up: 1 to 32,767. TCP_KEEPINTVL.
    public static var keepAliveInterval: Self { seconds("TCP_KEEPINTVL", TCP_KEEPINTVL) }
    /// The time that sent bytes may remain unacknowledged before the connection fails with `ETIMEDOUT`, in
    /// milliseconds, rounded up. Zero selects the kernel's default, some 15 minutes. TCP_USER_TIMEOUT.
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

    /// `duration` in units of `unit` nanoseconds, rounded up; `nil` outside `range`.
    private static func units(_ duration: Duration, of unit: Int64, _ range: ClosedRange<Int64>) -> CInt? {
        guard duration >= .zero, duration <= .seconds(range.upperBound) else { return nil }
        let nanoseconds = duration.clampedNanoseconds
        let count = nanoseconds / unit + (nanoseconds % unit == 0 ? 0 : 1)
        return range.contains(count) ? CInt(count) : nil
    }
}

extension Socket {
    /// - Throws: `SystemError` that names option and value: `EINVAL` for a value that the option cannot have, or the
    ///   kernel's error.
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
