import CLinux
import ReactorLibc

/// A socket option and the type of its value: see socket(7), tcp(7), ip(7), ipv6(7).
///
/// ```swift
/// try connection.set(.keepAlive, to: true)
/// let bytes = try connection.value(of: .sendBuffer)
/// let idle = SocketOption(level: CInt(IPPROTO_TCP), name: TCP_KEEPIDLE)
/// let listener = try Listener.bind("0.0.0.0:80", options: [.set(.reusePort, to: true), .set(idle, to: 30)])
/// ```
///
/// SO_LINGER is missing because it would block the thread. `Connection.close` waits for the peer without blocking, and
/// `abort` sends a reset.
public struct SocketOption<Value: Sendable>: Sendable {
    /// The kernel's name, for example `TCP_NODELAY`.
    package let name: String
    let level: CInt
    let number: CInt
    /// The kernel would read a negative size as its maximum.
    var least = CInt.min
    /// Returns `nil` for a value that does not fit the kernel's type.
    let encode: @Sendable (Value) -> CInt?
    let decode: @Sendable (CInt) -> Value
}

/// An option and its value, for the `options` argument of functions that open a socket: `.set(.reusePort, to: true)`.
public struct SocketSetting: Sendable, CustomStringConvertible {
    /// `SO_REUSEPORT: true`
    public let description: String
    let level: CInt
    let number: CInt
    let value: CInt?
    let least: CInt

    /// Pairs an option with a value. The function that opens the socket sets it, and throws `EINVAL` for an invalid
    /// value.
    public static func set<Value>(_ option: SocketOption<Value>, to value: Value) -> SocketSetting {
        SocketSetting(
            description: "\(option.name): \(value)", level: option.level, number: option.number,
            value: option.encode(value), least: option.least)
    }

    /// True for TCP_NODELAY. Every new connection sets that option, so this setting must be applied again.
    package var isNoDelay: Bool { level == CInt(IPPROTO_TCP) && number == TCP_NODELAY }
}

extension SocketOption where Value == Bool {
    /// Sends small writes at once. Set on every new connection. TCP_NODELAY.
    public static var noDelay: Self { flag("TCP_NODELAY", CInt(IPPROTO_TCP), TCP_NODELAY) }
    /// Makes the kernel probe a silent peer, and end the connection if the peer stays silent. SO_KEEPALIVE.
    public static var keepAlive: Self { flag("SO_KEEPALIVE", SOL_SOCKET, SO_KEEPALIVE) }
    /// Lets several sockets bind to one address; the kernel spreads clients or datagrams over them. SO_REUSEPORT.
    public static var reusePort: Self { flag("SO_REUSEPORT", SOL_SOCKET, SO_REUSEPORT) }

    private static func flag(_ name: String, _ level: CInt, _ number: CInt) -> Self {
        Self(name: name, level: level, number: number, encode: { $0 ? 1 : 0 }, decode: { $0 != 0 })
    }
}

extension SocketOption where Value == Int {
    /// The kernel's receive buffer in bytes. The kernel limits the size to net.core.rmem_max and doubles it for its
    /// bookkeeping; reading the option returns the result. A negative size is refused. SO_RCVBUF.
    public static var receiveBuffer: Self { Self(level: SOL_SOCKET, name: SO_RCVBUF, "SO_RCVBUF", least: 0) }
    /// The kernel's send buffer in bytes. Like `receiveBuffer`, but limited by net.core.wmem_max. SO_SNDBUF.
    public static var sendBuffer: Self { Self(level: SOL_SOCKET, name: SO_SNDBUF, "SO_SNDBUF", least: 0) }

    /// Any other option with an `int` value: `SocketOption(level: SOL_SOCKET, name: SO_BROADCAST)`. A flag is 0 or 1.
    /// - Parameters:
    ///   - level: `SOL_SOCKET`, or a protocol's number, such as `CInt(IPPROTO_IP)`.
    ///   - name: the option's number.
    public init(level: CInt, name: CInt) { self.init(level: level, name: name, "option \(name) of level \(level)") }

    private init(level: CInt, name number: CInt, _ name: String, least: CInt = .min) {
        self.init(
            name: name, level: level, number: number, least: least, encode: { CInt(exactly: $0) }, decode: { Int($0) })
    }
}

extension Socket {
    /// - Throws: a `SystemError` that names option and value: `EINVAL` for an impossible value, or the kernel's error.
    package func apply(_ setting: SocketSetting) throws(SystemError) {
        guard let value = setting.value, value >= setting.least else {
            let range = "\(setting.least) to \(CInt.max)"
            throw SystemError(.setSocketOption, EINVAL, detail: "\(setting), which takes \(range)")
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
