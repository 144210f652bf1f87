import Reactor

// The queue of writes as somebody sees it who fills it without waiting for each write.

extension Connection {
    static var defaultWatermarks: (low: Int, high: Int) { (32 << 10, 64 << 10) }

    /// Between which lengths of the queue, in bytes, `isWritable` changes: it goes when `high` is reached, and comes
    /// back when the queue has sunk to `low`. 32 KiB and 64 KiB. A high mark below one counts as one, and the low one
    /// is at least zero and below the high one.
    ///
    /// These are the bytes of the writes alone. Where they are so small that `writeQueueLimit`, which counts what a write
    /// takes beside them, is reached first, `isWritable` goes at that limit and comes back at half of it.
    public var writeWatermarks: (low: Int, high: Int) {
        get { cold?.watermarks ?? Self.defaultWatermarks }
        set {
            let high = max(newValue.high, 1)
            makeColdState.watermarks = (low: min(max(newValue.low, 0), high - 1), high: high)
            updateCongestion()
            signalWritableIfNeeded()
        }
    }

    /// Whether to write more: the queue is short, and nothing stands against a write. Nobody is kept from writing when
    /// it is false, but for `writeQueueLimit`.
    public var isWritable: Bool { !writer.isCongested && canWrite }

    /// Fulfilled when the queue has sunk to the low watermark, once for each time that it has reached the high one; at
    /// once while `isWritable`. Also when the connection can take no more writes: the next one says why.
    ///
    /// ```swift
    /// func produce() -> Promise<Void> {
    ///     while connection.isWritable { connection.write(next()).cauterize() }
    ///     return connection.writable().then { connection.write(next()) }.then { produce() }
    /// }
    /// ```
    ///
    /// Write after it without asking once more, as here: the error of that write is what ends a producer whose connection
    /// has failed.
    @inlinable @inline(__always)
    public func writable(file: StaticString = #fileID, line: UInt = #line) -> Guarantee<Void> {
        Guarantee(waitUntilWritable().core.traced(root: "writable", Guarantee<Void>.self, file, line))
    }

    @usableFromInline
    func waitUntilWritable() -> Guarantee<Void> {
        guard writer.isCongested else { return .value }
        let cold = makeColdState
        let core = cold.writable ?? IOPromise(Void.self, self)
        cold.writable = core
        return Guarantee(core)
    }

    func updateCongestion() {
        if !writer.isCongested && (queuedBytes >= writeWatermarks.high || isFull) { writer.isCongested = true }
    }

    /// Tells who waits that there is room, if that is so. The last thing that a flush does: who is told may write
    /// again.
    func signalWritableIfNeeded() {
        guard writer.isCongested, queuedBytes <= writeWatermarks.low else { return }
        if let queue = writer.queue, queue.weight > writeQueueLimit / 2 { return }
        writer.isCongested = false
        guard let core = cold?.writable else { return }
        cold?.writable = nil
        core.fulfill(())
    }
}
