import Reactor

// The queue of writes for producers that fill it without waiting for each write.

extension Connection {
    static var defaultWatermarks: (low: Int, high: Int) { (32 << 10, 64 << 10) }

    /// The lengths of the queue, in bytes, at which `isWritable` changes: it becomes false when the queue reaches
    /// `high`, and true again when the queue has sunk to `low`. The default is 32 KiB and 64 KiB. A high mark below one
    /// counts as one; the low one is clamped to at least zero and below the high one.
    ///
    /// Only the bytes of the writes count. If the writes are so small that `writeQueueLimit`, which also counts the
    /// overhead of each write, is reached first, `isWritable` becomes false at that limit and true again at half of it.
    public var writeWatermarks: (low: Int, high: Int) {
        get { cold?.watermarks ?? Self.defaultWatermarks }
        set {
            let high = max(newValue.high, 1)
            ensuredColdState.watermarks = (low: min(max(newValue.low, 0), high - 1), high: high)
            updateCongestion()
            signalWritableIfNeeded()
        }
    }

    /// Whether a producer should write more: the queue is short, and the connection can be written to. While it is
    /// false, further writes are still accepted, up to `writeQueueLimit`.
    public var isWritable: Bool { !writer.isCongested && (canWrite || canWriteFiltered) }

    /// Fulfilled when the queue has sunk to the low watermark, once for each time that it has reached the high one; at
    /// once while `isWritable` is true. Also fulfilled when the connection takes no more writes: the next write reports
    /// the reason.
    ///
    /// ```swift
    /// func produce() -> Promise<Void> {
    ///     while connection.isWritable { connection.write(next()).cauterize() }
    ///     return connection.writable().then { connection.write(next()) }.then { produce() }
    /// }
    /// ```
    ///
    /// After it, write without checking `isWritable` again, as here: if the connection has failed, the error of that
    /// write ends the producer.
    /// - Parameters:
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a guarantee without a value.
    @inlinable @inline(__always)
    public func writable(file: StaticString = #fileID, line: UInt = #line) -> Guarantee<Void> {
        Guarantee(waitUntilWritable().core.traced(root: "writable", Guarantee<Void>.self, file, line))
    }

    @usableFromInline
    func waitUntilWritable() -> Guarantee<Void> {
        guard writer.isCongested else { return .value }
        let cold = ensuredColdState
        let core = cold.writable ?? IOPromise(Void.self, self)
        cold.writable = core
        return Guarantee(core)
    }

    func updateCongestion() {
        if !writer.isCongested && (queueLength >= writeWatermarks.high || isFull) && failure == nil {
            writer.isCongested = true
        }
        noteHeldMemory()
    }

    /// Fulfills `writable()` if there is room again. A flush calls this last, since a handler may write again.
    func signalWritableIfNeeded() {
        guard writer.isCongested, queuedBytes <= writeWatermarks.low else { return }
        if let queue = writer.queue, queue.weight > writeQueueLimit / 2 { return }
        endCongestion()
    }

    /// Fulfills `writable()`.
    func endCongestion() {
        writer.isCongested = false
        guard let core = cold?.writable else { return }
        cold?.writable = nil
        core.fulfill(())
    }
}
