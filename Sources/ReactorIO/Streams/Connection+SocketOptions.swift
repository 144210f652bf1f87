import Reactor
import ReactorLibc

extension Connection {
    /// Sets an option of the socket.
    ///
    /// ```swift
    /// try connection.set(.keepAlive, to: true)
    /// ```
    /// - Throws: `SystemError` with the option and the value; see setsockopt(2):
    ///   - `EINVAL` for a value that the option cannot have;
    ///   - `ENOPROTOOPT` or `EOPNOTSUPP` for an option that this kind of connection lacks;
    ///   - `EBADF` once the connection is closed.
    public func set<Value>(_ option: SocketOption<Value>, to value: Value) throws(SystemError) {
        loop.assertOwner()
        let setting = SocketSetting.set(option, to: value)
        guard lifecycle.hasDescriptor else {
            throw SystemError(.setSocketOption, EBADF, detail: "\(setting): the connection is closed")
        }
        cold?.hasChangedOptions = true
        try socket.apply(setting)
    }

    /// Reads an option's value from the kernel, which may differ from the value that was set.
    /// - Throws: `SystemError` with the option, with the codes of `set`.
    public func value<Value>(of option: SocketOption<Value>) throws(SystemError) -> Value {
        guard lifecycle.hasDescriptor else {
            throw SystemError(.getSocketOption, EBADF, detail: "\(option.name): the connection is closed")
        }
        return try socket.value(of: option)
    }
}
