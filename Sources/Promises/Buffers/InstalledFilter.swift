import Glibc
import Reactor

/// The filter of a connection, with the state that the connection keeps for it.
final class InstalledFilter {
    /// A write that waits until the filter can be called with its bytes.
    struct HeldWrite {
        let bytes: [UInt8]
        let promise: WritePromise
    }

    private var filter: any ConnectionFilter
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
    /// Whether the connection reads for the filter, though no read waits.
    var readsForItself = false

    /// Whether the end record is to be sent as soon as no write is held and the filter can be called.
    var isEndDue = false
    /// Whether the filter has been asked for its end record, or will not be.
    var hasSentEnd = false

    /// Output that belongs to no write and that the kernel has not taken: its end in the bytes that are sent, and its length.
    private var ownOutput = IndexedQueue<(end: Int, count: Int)>()
    private var ownCount = 0

    /// The writes that are held, from `firstHeld` on.
    private var held: [HeldWrite?] = []
    private var firstHeld = 0
    private(set) var heldBytes = 0

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
    var isBusy: Bool { isCalling || handshake != nil || holdsWrites || filter.isInsideRecord }

    // MARK: Held writes

    var holdsWrites: Bool { firstHeld < held.count }
    var heldWrites: Int { held.count - firstHeld }
    var heldWeight: Int { heldBytes + heldWrites * WriteQueue.weightOfWrite }
    func hold(_ write: HeldWrite) {
        heldBytes += write.bytes.count
        held.append(write)
    }

    /// Holds a write that was made before those that are held.
    func holdFirst(_ write: HeldWrite) {
        heldBytes += write.bytes.count
        if firstHeld == 0 { return held.insert(write, at: 0) }
        firstHeld -= 1
        held[firstHeld] = write
    }

    func takeNextHeld() -> HeldWrite? {
        guard holdsWrites, let next = held[firstHeld].take() else { return nil }
        heldBytes -= next.bytes.count
        firstHeld += 1
        if firstHeld == held.count {
            held = []
            firstHeld = 0
        }
        return next
    }

    func takeHeld() -> [HeldWrite] {
        let taken = held.compactMap(\.self)
        held = []
        firstHeld = 0
        heldBytes = 0
        return taken
    }

    func takeHeldPromises() -> [PromiseCore] { takeHeld().map(\.promise) }

    /// Rejects the held writes of a connection that has been released: neither the kernel nor the loop retains a connection for
    /// them while it must not read.
    func rejectHeldWrites(_ failure: SystemError?) {
        let error = failure ?? SystemError(.send, ECANCELED, detail: "the connection was closed")
        for promise in takeHeldPromises() { promise.reject(error) }
    }

    // MARK: Output of the filter's own

    /// Notes that the last `count` of the bytes that will have been sent at `end` belong to no write.
    func noteOwnOutput(_ count: Int, end: Int) {
        ownOutput.append((end, count))
        ownCount += count
    }

    /// The length of the output that belongs to no write and is not among the first `sent` bytes.
    func unsentOwnOutput(after sent: Int) -> Int {
        while !ownOutput.isEmpty, ownOutput[ownOutput.start].end <= sent { ownCount -= ownOutput.removeFirst().count }
        return ownCount
    }
}
