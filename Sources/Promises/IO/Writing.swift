import Reactor

// The forms of `write`; what becomes of the bytes is in Connection.swift and WriteQueue.swift.

extension Connection {
    /// Writes all of `bytes`. Fulfilled when the kernel has taken them, which is the backpressure: wait for one write
    /// before the next, and a slow reader slows you down. Writes go out in the order of the calls; an empty one
    /// is fulfilled after those before it.
    ///
    /// Rejected with a `SystemError`: what the kernel reports, such as `ECONNRESET` or `EPIPE`, the same for every write that
    /// was waiting, and of `recv` where a read met it first; `ENOBUFS` beyond `writeQueueLimit`; `EPIPE` after `shutdownWrite`; `EBADF` after `close`
    /// or `abort`; `ECANCELED` if `abort` came while it waited. No signal is raised. See send(2).
    ///
    /// Cancelled while it waits behind others, it is never sent. One of which the kernel has bytes cannot be taken
    /// back, and `cancel()` does nothing: `abort` the connection.
    @inlinable @inline(__always)
    public func write<Bytes: Collection>(
        _ bytes: Bytes, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> where Bytes.Element == UInt8 {
        let array = bytes as? [UInt8] ?? Array(bytes)
        return Promise(send(array).core.traced(root: "write", Promise<Void>.self, file, line))
    }

    /// Writes `text` in UTF-8; see the form with bytes.
    @inlinable @inline(__always)
    public func write(_ text: String, file: StaticString = #fileID, line: UInt = #line) -> Promise<Void> {
        write(Array(text.utf8), file: file, line: line)
    }

    /// Writes several buffers as if they were one; see the form with bytes.
    @inlinable
    public func write<Buffers: Collection>(
        _ buffers: Buffers, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> where Buffers.Element: Collection, Buffers.Element.Element == UInt8 {
        var joined: [UInt8] = []
        joined.reserveCapacity(buffers.reduce(0) { $0 + $1.count })
        for buffer in buffers { joined.append(contentsOf: buffer) }
        return write(joined, file: file, line: line)
    }
}
