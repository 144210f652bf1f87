extension Connection {
    /// What comes next: bytes, the peer's end, or a failure. Waits until there is something to read, then reads once,
    /// at most `limit` bytes and never more than 64 KiB.
    ///
    /// Cancelling it leaves what comes to the next read. One read at a time: a second one that comes while the first waits
    /// fails with `EBUSY`. After `close` or `abort` a read fails with `EBADF`, one that was waiting with `ECANCELED`. See
    /// recv(2).
    @inlinable @inline(__always)
    public func read(
        upTo limit: Int = 65536, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<ReadOutcome> {
        Guarantee(startRead(limit).core.traced(root: "read", Guarantee<ReadOutcome>.self, file, line))
    }

    /// The next bytes; at the peer's end none, that is, an empty array. Rejected with the `SystemError` that `read` would
    /// report.
    public func receive(
        upTo limit: Int = 65536, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[UInt8]> { startRead(limit).map("receive", { try $0.bytesOrEnd ?? [] }, file, line) }
}
