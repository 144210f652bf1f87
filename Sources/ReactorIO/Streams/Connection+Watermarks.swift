import Promises
import Reactor

// The write queue, for producers that fill it without waiting for each write.

extension Connection {
    /// The memory, in bytes, that queued writes may take. Beyond it, further writes are rejected with `ENOBUFS`. The
    /// default is 4 MiB; a single write may be larger. Code that waits for each write before the next one stays far
    /// below the limit.
    ///
    /// Each queued write, even an empty one, counts with its bytes and 192 more, for its promise and its entry. So the
    /// default admits 4 MiB of large writes, or 21,700 writes of one byte.
    public var writeQueueLimit: Int {
        get { cold?.rare?.writeLimits.queueLimit ?? WriteLimits.defaultQueueLimit }
        set { changeWriteLimits { $0.queueLimit = newValue } }
    }

    /// The queue lengths, in bytes, at which `isWritable` changes: it becomes false when the queue reaches `high`, and
    /// true again when the queue has drained to `low`. The default is 32 KiB and 64 KiB. A high mark below one counts
    /// as one; the low one is clamped to at least zero and below the high one.
    ///
    /// Only the bytes of the writes count. If small writes reach `writeQueueLimit` first, which also counts the
    /// overhead per write, `isWritable` becomes false there and true again at half of it.
    public var writeWatermarks: (low: Int, high: Int) {
        get { cold?.rare?.writeLimits.watermarks ?? WriteLimits.defaultWatermarks }
        set { changeWriteLimits { $0.watermarks = newValue } }
    }

    /// Written bytes that the kernel has not taken yet. With a filter these are bytes of the filter's output.
    public var queuedBytes: Int { writer.queuedBytes + (cold?.filter?.deferred.byteCount ?? 0) }

    /// `true` if a producer should write more: the queue is short, and the connection can be written to. While it is
    /// false, further writes are still accepted, up to `writeQueueLimit`.
    public var isWritable: Bool { !writer.isCongested && takesWrites }

    /// Fulfilled when the queue has drained to the low watermark, once each time it has reached the high one; at once
    /// while `isWritable` is true. Also fulfilled when the connection takes no more writes: the next write reports the
    /// reason.
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
    @inlinable @inline(__always)
    public func writable(file: StaticString = #fileID, line: UInt = #line) -> Guarantee<Void> {
        Guarantee(waitUntilWritable().core.traced(root: "writable", Guarantee<Void>.self, file, line))
    }

    @usableFromInline
    func waitUntilWritable() -> Guarantee<Void> {
        loop.assertOwner("writable")
        guard writer.isCongested else { return .value }
        let rare = ensuredRareState
        let core = rare.writeLimits.writable ?? PromiseCore.pending(Void.self, by: self)
        rare.writeLimits.writable = core
        // One for each caller: cancelling one leaves the others.
        return Guarantee(core).map {}
    }

    private func changeWriteLimits(_ change: (inout WriteLimits) -> Void) {
        loop.assertOwner()
        change(&ensuredRareState.writeLimits)
        updateCongestion()
        signalWritableIfNeeded()
    }

    /// The memory of the writes that wait, for the kernel or for a filter.
    var queuedWeight: Int { (writer.queue?.weight ?? 0) + (cold?.filter?.deferred.weight ?? 0) }

    /// Whether they have reached the limit.
    var isFull: Bool {
        let weight = queuedWeight
        return weight > 0 && weight >= writeQueueLimit
    }

    func updateCongestion() {
        // Gathered bytes leave at the end of the turn, and only what the kernel does not take is queued then.
        let isOpen = !writer.isCongested && !writer.isGathering && failure == nil
        if isOpen && (queuedBytes >= writeWatermarks.high || isFull) { writer.isCongested = true }
        // A close has its own limits.
        if writer.isQueued && lifecycle == .open { cold?.rare?.writeClock?.start() }
        noteHeldMemory()
    }

    /// Fulfills `writable()` if there is room again. A flush calls this last, since a handler may write again.
    func signalWritableIfNeeded() {
        guard writer.isCongested, queuedBytes <= writeWatermarks.low, queuedWeight <= max(writeQueueLimit / 2, 0)
        else { return }
        endCongestion()
    }

    func endCongestion() {
        writer.isCongested = false
        cold?.rare?.writeLimits.writable.take()?.fulfill(())
    }
}
