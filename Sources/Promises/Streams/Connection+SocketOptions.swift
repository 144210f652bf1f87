import Glibc
import Reactor

// Options of what is open.

extension Connection {
    /// Sets an option of the socket.
    /// - Throws: `SystemError` that names option and value: `EINVAL` for a value that the option cannot have, `ENOPROTOOPT` or
    ///   `EOPNOTSUPP` for one that this kind of connection has not, `EBADF` once it is closed. See setsockopt(2).
    public func set<Value>(_ option: SocketOption<Value>, to value: Value) throws(SystemError) {
        let setting = SocketSetting.set(option, to: value)
        guard lifecycle.hasDescriptor else {
            throw SystemError(.setSocketOption, EBADF, detail: "\(setting): the connection is closed")
        }
        try socket.apply(setting)
    }

    /// The value of an option as the kernel has it, which may be another than was set.
    /// - Throws: `SystemError` that names the option; as for `set`.
    public func value<Value>(of option: SocketOption<Value>) throws(SystemError) -> Value {
        guard lifecycle.hasDescriptor else {
            throw SystemError(.getSocketOption, EBADF, detail: "\(option.name): the connection is closed")
        }
        return try socket.value(of: option)
    }
}
