import CLinux
import ReactorLibc

/// A socket option with the type of its value: see socket(7), tcp(7), ip(7), ipv6(7).
///
/// ```swift
/// try connection.set(.keepAlive, to: true)
/// let bytes = try connection.value(of: .sendBuffer)
/// let idle = SocketOption(level: CInt(IPPROTO_TCP), name: TCP_KEEPIDLE)
/// let listener = try Listener.bind("0.0.0.0:80", options: [.set(.reusePort, to: true), .set(idle, to: 30)])
/// ```
///
/// There is no option for SO_LINGER: that option would block the thread. `Connection.close` waits for the peer without
/// blocking, and `abort` sends a reset.
public struct SocketOption<Value: Sendable>: Sendable {
    /// The kernel's name, for example `TCP_NODELAY`.
    package let name: String
    let level: CInt
    let number: CInt
    /// The smallest value. The kernel would take a negative size for the largest one that it allows.
    var least = CInt.min
    /// Returns `nil` for a value that the kernel's type cannot have.
    let encode: @Sendable (Value) -> CInt?
    let decode: @Sendable (CInt) -> Value
}

/// An option with a value, for the `options` argument of functions that open a socket: `.set(.reusePort, to: true)`.
public struct SocketSetting: Sendable, CustomStringConvertible {
    /// `SO_REUSEPORT: true`
    public let description: String
    let level: CInt
    let number: CInt
    let value: CInt?
    let least: CInt

    /// Pairs an option with a value, to be set when the socket is opened. An invalid value is refused, with `EINVAL`,
    /// when the socket is opened.
    public static func set<Value>(_ option: SocketOption<Value>, to value: Value) -> SocketSetting {
        SocketSetting(
            description: "\(option.name): \(value)", level: option.level, number: option.number,
            value: option.encode(value), least: option.least)
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
        Self(name: name, level: level, number: number, encode: { $0 ? 1 : 0 }, decode: { $0 != 0 })
    }
}

extension SocketOption where Value == Int {
    /// The size of the kernel's receive buffer in bytes. The kernel cuts the number to net.core.rmem_max, doubles it for
    /// its own bookkeeping, and returns the result when the option is read. A negative size is refused. SO_RCVBUF.
    public static var receiveBuffer: Self { Self(level: SOL_SOCKET, name: SO_RCVBUF, "SO_RCVBUF", least: 0) }
    /// The size of the kernel's send buffer in bytes, as for `receiveBuffer`, limited by net.core.wmem_max. SO_SNDBUF.
    public static var sendBuffer: Self { Self(level: SOL_SOCKET, name: SO_SNDBUF, "SO_SNDBUF", least: 0) }

    /// Any other option whose value is an `int`, by its numbers: `SocketOption(level: SOL_SOCKET, name: SO_BROADCAST)`.
    /// A flag is 0 or 1.
    /// - Parameters:
    ///   - level: `SOL_SOCKET`, or the number of a protocol, such as `CInt(IPPROTO_IP)`.
    ///   - name: the number of the option.
    public init(level: CInt, name: CInt) { self.init(level: level, name: name, "option \(name) of level \(level)") }

    private init(level: CInt, name number: CInt, _ name: String, least: CInt = .min) {
        self.init(
            name: name, level: level, number: number, least: least, encode: { CInt(exactly: $0) }, decode: { Int($0) })
    }
}

extension Socket {
    /// - Throws: `SystemError` that names option and value: `EINVAL` for a value that the option cannot have, or the
    ///   kernel's error.
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
