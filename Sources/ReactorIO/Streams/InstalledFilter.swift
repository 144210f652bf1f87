import Promises
import Reactor
import ReactorLibc

/// The owner of a connection's filter. Calls the filter's methods, one at a time, and acts on their output. On the path
/// `.filtered` the connection calls this object, on the loop's thread.
///
/// ```
///                    becomeReady               removeFilter
///   [in handshake] ----------------> [ready] ----------------> [removed]
///      |                                |
///      | throws, limit, cancelled,      | throws, limit
///      | end of the input               |
///      +-------> [failed] <-------------+
/// ```
///
/// `isReady`, `isRemoved` and `hasFailed` are never unset. The next `proceed` then ends the handshake, and settles its
/// promise. A filter that is removed in the handshake becomes ready first.
///
/// A ready filter has two directions that end independently. Its input is open until the peer's end record, or the end
/// of the descriptor's stream (`inputHasEnded`). Its output is open until `EndRecord` ends it. Until then it takes
/// writes, which wait in `deferred` while the filter needs input for them. A failure ends both directions, and a
/// removal leaves both open. In each state the connection may lose its descriptor, and then no longer calls the filter.
///
/// Code that calls the filter, or ends a part of it, calls `proceed` last, which does everything that has become
/// possible. A write that waits for deferred writes makes nothing possible, so it need not. Such code also calls
/// `updateInterest`, except in an event of the descriptor and in `readWasCancelled`, whose callers do so.
final class InstalledFilter {
    // Unowned, because the connection retains this object. Other owners, a pool and a job, use nothing here that needs
    // the connection after its release.
    unowned let connection: Connection
    private(set) var filter: any ConnectionFilter
    /// True while a method of the filter is running; no method may be called then.
    private(set) var isCalling = false

    /// The handshake; `nil` after its promise has been settled or cancelled.
    var handshake: Handshake?
    private(set) var isReady = false
    private(set) var isRemoved = false
    private var hasFailed = false

    /// True when bytes were delivered since a read was last served.
    var hasNewInput = false
    private(set) var deliveredCount = 0
    /// True when the plain stream has ended or failed.
    var inputHasEnded = false
    /// True when the peer has ended its side of the descriptor, or the descriptor has failed.
    var sourceHasEnded = false
    var endRecord = EndRecord.open
    /// True when a write probably follows the current output in the same turn: the answer to the delivered bytes, or
    /// the request of a client that has become ready. The filter's own bytes wait for that write, so that both leave in
    /// one call and reach the peer in one packet.
    private(set) var expectsWrite = false

    var deferred = DeferredWrites()
    var grace = Grace()
    /// The received bytes that the filter held after its last call.
    private var heldByFilter = 0
    var heldMemory: Int { heldByFilter + deferred.weight }

    struct Handshake {
        let promise: PromiseCore
        var limit = Duration.zero
        var deadline = LoopInstant.distantFuture
        var timer: EventLoop.Timer?
        /// True when the filter has begun the handshake, as a client does.
        var isBegun = false
    }

    enum EndRecord {
        case open
        /// Due as soon as no write is deferred and the filter can be called.
        case due
        /// The filter has been asked for its end record, or never will be.
        case sent
    }

    init(_ filter: any ConnectionFilter, on connection: Connection) {
        self.filter = filter
        self.connection = connection
    }

    var isInHandshake: Bool { handshake != nil }
    /// True when either side waits for something that no read shows.
    var isBusy: Bool { isCalling || isInHandshake || !deferred.isEmpty || filter.isInsideRecord }

    // MARK: Calls

    // Functions that use the connection several times keep it in a constant, because each use of the property costs a
    // retain and a release.

    /// Has no effect if the filter is no longer current, or is being called.
    func call(_ body: (inout any ConnectionFilter, inout FilterOutput) throws -> Void) {
        if isCurrent, !isCalling { takeUp(output(of: body), nil) }
    }

    func output(of body: (inout any ConnectionFilter, inout FilterOutput) throws -> Void) -> FilterOutput {
        var output = FilterOutput()
        isCalling = true
        do { try body(&filter, &output) } catch { output.error = error }
        heldByFilter = filter.heldBytes.asHeldBytes
        isCalling = false
        return output
    }

    /// True when the filter still serves its connection.
    // A connection that has its descriptor has this object, until the filter is removed.
    var isCurrent: Bool { !isRemoved && !hasFailed && connection.lifecycle.hasDescriptor }

    /// - Parameter write: the promise of the write whose output this is, if any.
    func takeUp(_ output: FilterOutput, _ write: PromiseCore?) {
        let connection = connection
        var write = write
        if !isCurrent || connection.failure != nil {
            // The call, or a turn of the loop inside it, has ended the connection.
            let closed = SystemError(connection.writeCall, ECANCELED, detail: "the connection was closed")
            write.take()?.reject(connection.reportedFailure ?? closed)
        }
        guard isCurrent else { return }
        if !output.delivered.isEmpty && connection.lifecycle.isOpenOrFailed && !inputHasEnded {
            hasNewInput = true
            deliveredCount += output.delivered.count
            connection.appendInput(output.delivered)
        }
        if output.isReady { isReady = true }
        if output.endsInput { inputHasEnded = true }
        if output.removesFilter && output.error == nil { isRemoved = true }
        expectsWrite =
            output.error == nil && isReady && !isRemoved && endRecord != .sent && connection.lifecycle == .open
            && connection.loop.isBeingDriven
            && (!output.delivered.isEmpty || output.isReady && handshake?.isBegun == true)
        queueOutput(output.sent, output.error == nil ? write : nil)
        expectsWrite = false
        if let error = output.error {
            inputHasEnded = true
            if connection.failure == nil { fail(error) } else { explainFailure(error) }
            write?.reject(error)
        }
    }

    /// Records the filter's reason for a failed send, found in bytes that the peer had sent before: for instance the
    /// TLS 1.3 alert by which a server refuses a certificate after the client's handshake.
    private func explainFailure(_ error: any Error) {
        guard !sourceHasEnded, let failure = connection.failure, failure.call == connection.writeCall,
            connection.cold?.rare?.failure?.cause == nil
        else { return }
        connection.ensuredRareState.failure?.cause = error
    }

    /// Does what the output of a call has made possible: deferred writes, the end record, the end of the filter, the
    /// pending read.
    func proceed(isInEvent: Bool = false) {
        if isCalling { return }
        let connection = connection
        sendDeferredWrites()
        if !isReady && inputHasEnded { fail(ConnectionFilterError.truncated) }
        if inputHasEnded {
            endDeferredWrites()
        } else if let shortage {
            fail(shortage)
        }
        if connection.cold?.filter === self, isRemoved { remove() }
        if endRecord == .due && deferred.isEmpty && connection.lifecycle.hasDescriptor { sendDueEnd() }
        connection.updateCongestion()
        // A filter may have taken deferred writes without any output.
        connection.signalWritableIfNeeded()
        serveRead(isInEvent: isInEvent)
    }

    // MARK: The end

    /// Ends both directions. The output is still sent, and then the end of the stream.
    func fail(_ error: any Error, _ code: CInt = EPROTO) {
        guard connection.cold?.filter === self, connection.failure == nil, connection.lifecycle.hasDescriptor
        else { return }
        let failure = error as? SystemError ?? SystemError(connection.readCall, code, detail: "\(error)")
        // The error's description is user code, and may have closed the connection.
        guard connection.failure == nil, connection.lifecycle.hasDescriptor else { return }
        hasFailed = true
        inputHasEnded = true
        endRecord = .sent
        connection.ensuredRareState.failure = ConnectionFailure(error: failure, cause: error)
        connection.writer.isCongested = false
        let promises = (connection.writer.queue?.takePromises() ?? []) + connection.takeUnqueuedPromises()
        if connection.lifecycle.isOpenOrFailed {
            connection.endWriter()
        } else if !connection.writer.isQueued {
            ConnectionClose.lingerIfDelivered(connection)
        }
        for promise in promises { promise.reject(error) }
        PeerWatching.settle(as: .failed(failure), at: connection)
        // Ends congestion at any queue length: the connection takes no more writes.
        connection.endCongestion()
    }

    private func remove() {
        let writes = deferred.takeAll()
        if connection.writer.takesWrites {
            for write in writes { connection.writer.enqueue { $0.append(write.bytes, isFinal: true, write.promise) } }
        }
        connection.cold?.filter = nil
        if connection.path == .filtered { connection.path = .direct }
    }

    func cancelTimer() { handshake?.timer?.cancel() }

    func takeDeferredPromises() -> [PromiseCore] { deferred.takeAll().map(\.promise) }

    func connectionDidEnd(_ failure: SystemError?) {
        let error = failure ?? SystemError(.send, ECANCELED, detail: "the connection was closed")
        for promise in takeDeferredPromises() { promise.reject(error) }
    }
}
