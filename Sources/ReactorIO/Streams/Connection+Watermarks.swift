import Promises
import Reactor

extension Connection {
    /// The maximum memory of queued writes, in bytes. Beyond it, further writes are rejected with `ENOBUFS`. The
    /// default is 4 MiB. A single write may be larger. Code that waits for each write stays far below the limit.
    ///
    /// Each queued write counts as its bytes plus 192, for its promise and its entry. So the default admits 4 MiB of
    /// large writes, or 21,700 writes of one byte.
    public var writeQueueLimit: Int {
        get { cold?.rare?.writeLimits.queueLimit ?? WriteLimits.defaultQueueLimit }
        set { changeWriteLimits { $0.queueLimit = newValue } }
    }

    /// The queue lengths, in bytes, at which `isWritable` changes: to false when the queue reaches `high`, and to true
    /// when it has drained to `low`. The default is 32 KiB and 64 KiB. `high` is clamped to at least one, `low` to at
    /// least zero and below `high`.
    ///
    /// Only the bytes of the writes count. If small writes reach `writeQueueLimit` first, `isWritable` becomes false at
    /// that limit, and true again at half of it.
    public var writeWatermarks: (low: Int, high: Int) {
        get { cold?.rare?.writeLimits.watermarks ?? WriteLimits.defaultWatermarks }
        set { changeWriteLimits { $0.watermarks = newValue } }
    }

    /// The number of written bytes that the kernel has not taken. With a filter, bytes of its output.
    public var queuedBytes: Int { writer.queuedBytes + (cold?.filter?.deferred.byteCount ?? 0) }

    /// True when a producer should write more. While false, further writes are still accepted, up to `writeQueueLimit`.
    public var isWritable: Bool { !writer.isCongested && takesWrites }

    /// Waits until a queue that has reached the high watermark drains to the low one. Fulfilled at once while
    /// `isWritable` is true, and when the connection takes no more writes: the next write then reports the reason.
    ///
    /// ```swift
    /// func produce() -> Promise<Void> {
    ///     while connection.isWritable { connection.write(next()).cauterize() }
    ///     return connection.writable().then { connection.write(next()) }.then { produce() }
    /// }
    /// ```
    ///
    /// Afterwards write without checking `isWritable` again, so that an error of that write ends the producer.
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
        // Each caller gets its own guarantee, so that cancelling one leaves the others.
        return Guarantee(core).map {}
    }

    private func changeWriteLimits(_ change: (inout WriteLimits) -> Void) {
        loop.assertOwner()
        change(&ensuredRareState.writeLimits)
        updateCongestion()
        signalWritableIfNeeded()
    }

    var queuedWeight: Int { (writer.queue?.weight ?? 0) + (cold?.filter?.deferred.weight ?? 0) }

    var isFull: Bool {
        let weight = queuedWeight
        return weight > 0 && weight >= writeQueueLimit
    }

    func updateCongestion() {
        // Gathered bytes leave at the end of the turn. Only those that the kernel does not take are queued.
        let isOpen = !writer.isCongested && !writer.isGathering && failure == nil
        if isOpen && (queuedBytes >= writeWatermarks.high || isFull) { writer.isCongested = true }
        // A close has its own limits.
        if writer.isQueued && lifecycle == .open { cold?.rare?.writeClock?.start() }
        noteHeldMemory()
    }

    /// A flush calls this last, since a handler may write again.
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
