import Glibc
import Reactor

/// The filter of a connection, with the state that the connection keeps for it.
final class InstalledFilter {
    /// A write whose bytes the filter has not transformed yet: it needs input first, or is being called.
    struct DeferredWrite {
        let bytes: [UInt8]
        let promise: WritePromise
    }

    private(set) var filter: any ConnectionFilter
    /// Whether a method of the filter is running: it must not be called again meanwhile.
    private(set) var isCalling = false

    /// The promise that waits for the filter to become ready.
    var handshake: PromiseCore?
    /// The time limit of the handshake.
    var timer: EventLoop.Timer?
    /// Whether the limit was reached while the kernel had input, which is read first.
    var isLate = false
    var isReady = false
    var isRemoved = false

    /// Whether bytes were delivered since a read was last served.
    var hasNewInput = false
    /// The number of bytes that were delivered.
    var deliveredCount = 0
    /// Whether the plain stream has ended or failed.
    var inputHasEnded = false
    /// Whether the peer has ended its side of the descriptor, or the descriptor has failed.
    var sourceHasEnded = false

    /// Whether the end record is to be sent as soon as no write is deferred and the filter can be called.
    var isEndDue = false
    /// Whether the filter has been asked for its end record, or will not be.
    var hasSentEnd = false

    /// Output that belongs to no write and that the kernel has not taken: its end in the bytes that are sent, and its memory.
    private var ownOutput = IndexedQueue<(end: Int, weight: Int)>()
    private var ownWeight = 0

    /// The deferred writes, from `firstDeferred` on.
    private var deferred: [DeferredWrite?] = []
    private var firstDeferred = 0
    /// The number of bytes of the deferred writes.
    private(set) var deferredBytes = 0

    init(_ filter: any ConnectionFilter) { self.filter = filter }

    /// Calls a method of the filter.
    func call(_ body: (inout any ConnectionFilter, inout FilterOutput) throws -> Void) -> FilterOutput {
        var output = FilterOutput()
        isCalling = true
        do { try body(&filter, &output) } catch { output.error = error }
        isCalling = false
        return output
    }

    /// Whether the peer waits for something, or this side does, that no read shows.
    var isBusy: Bool { isCalling || handshake != nil || hasDeferredWrites || filter.isInsideRecord }

    /// Whether the filter can do nothing before it has received more: during the handshake, and while writes are deferred.
    var needsInput: Bool { !isReady || hasDeferredWrites }

    // MARK: Deferred writes

    var hasDeferredWrites: Bool { firstDeferred < deferred.count }
    var deferredWriteCount: Int { deferred.count - firstDeferred }
    var deferredWeight: Int { deferredBytes + deferredWriteCount * WriteQueue.weightOfWrite }
    func deferWrite(_ write: DeferredWrite) {
        deferredBytes += write.bytes.count
        deferred.append(write)
    }

    /// Defers a write that was made before the other deferred writes.
    func deferFirst(_ write: DeferredWrite) {
        deferredBytes += write.bytes.count
        if firstDeferred == 0 { return deferred.insert(write, at: 0) }
        firstDeferred -= 1
        deferred[firstDeferred] = write
    }

    func takeNextDeferred() -> DeferredWrite? {
        guard hasDeferredWrites, let next = deferred[firstDeferred].take() else { return nil }
        deferredBytes -= next.bytes.count
        firstDeferred += 1
        if firstDeferred == deferred.count {
            deferred = []
            firstDeferred = 0
        }
        return next
    }

    func takeDeferred() -> [DeferredWrite] {
        let taken = deferred.compactMap(\.self)
        deferred = []
        firstDeferred = 0
        deferredBytes = 0
        return taken
    }

    func takeDeferredPromises() -> [PromiseCore] { takeDeferred().map(\.promise) }

    /// Rejects the deferred writes of a connection that has been released.
    func rejectDeferredWrites(_ failure: SystemError?) {
        let error = failure ?? SystemError(.send, ECANCELED, detail: "the connection was closed")
        for promise in takeDeferredPromises() { promise.reject(error) }
    }

    // MARK: Output of the filter's own

    /// Notes that the last `count` of the bytes that will have been sent at `end` belong to no write.
    func noteOwnOutput(_ count: Int, end: Int) {
        // Many small outputs take more memory for their entries than for their bytes.
        let weight = count + WriteQueue.weightOfWrite
        ownOutput.append((end, weight))
        ownWeight += weight
    }

    /// The approximate memory of the output that belongs to no write and is not among the first `sent` bytes.
    func weightOfOwnOutput(after sent: Int) -> Int {
        while !ownOutput.isEmpty, ownOutput[ownOutput.start].end <= sent { ownWeight -= ownOutput.removeFirst().weight }
        return ownWeight
    }
}
