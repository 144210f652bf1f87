import Glibc
import Reactor

/// The filter of a connection: calls its methods, one at a time, and acts on their output.
///
/// Each event, including a call of the filter, ends with `proceed`, which does whatever the event has made possible.
final class InstalledFilter: ConnectionLayer {
    // The connection retains this object. Other owners, a pool and a job, use nothing here that needs the connection
    // after its release.
    unowned let connection: Connection
    private(set) var filter: any ConnectionFilter
    /// Whether a method of the filter is running: it must not be called again meanwhile.
    private(set) var isCalling = false

    /// The promise that waits for the filter to become ready.
    var handshake: PromiseCore?
    /// The time limit of the handshake.
    var timer: EventLoop.Timer?
    /// Whether the limit was reached while the kernel had input, which is read first.
    var isLate = false
    private(set) var isReady = false
    private(set) var isRemoved = false
    private var hasFailed = false

    /// Whether bytes were delivered since a read was last served.
    var hasNewInput = false
    private(set) var deliveredCount = 0
    /// Whether the plain stream has ended or failed.
    var inputHasEnded = false
    var sourceHasEnded = false

    /// Whether the end record must be sent as soon as no write is deferred and the filter can be called.
    var isEndDue = false
    /// Whether the filter has been asked for its end record, or will not be.
    var hasSentEnd = false

    /// Whether the filter has begun the handshake, as a client does.
    var hasBegunHandshake = false
    /// Whether a write is likely to follow the current output in the same turn: the answer to the bytes that it
    /// delivers, or the request of a client that has become ready. The filter's own bytes then wait for that write, so
    /// that both leave in one call and reach the peer in one packet.
    private(set) var expectsWrite = false

    var deferred = DeferredWrites()
    /// The received bytes that the filter held after its last call.
    private var heldByFilter = 0
    var heldMemory: Int { heldByFilter + deferred.weight }

    init(_ filter: any ConnectionFilter, on connection: Connection) {
        self.filter = filter
        self.connection = connection
    }

    var isInHandshake: Bool { handshake != nil }
    var isBusy: Bool { isCalling || isInHandshake || !deferred.isEmpty || filter.isInsideRecord }

    // MARK: Calls

    // Functions that use the connection several times keep it in a constant: each use of the property counts a
    // reference.

    /// Calls a method of the filter and processes its output, unless the filter has been left or is being called.
    func call(_ body: (inout any ConnectionFilter, inout FilterOutput) throws -> Void) {
        if isCurrent, !isCalling { takeUp(output(of: body), nil) }
    }

    func output(of body: (inout any ConnectionFilter, inout FilterOutput) throws -> Void) -> FilterOutput {
        var output = FilterOutput()
        isCalling = true
        do { try body(&filter, &output) } catch { output.error = error }
        heldByFilter = filter.heldBytes
        isCalling = false
        return output
    }

    /// Whether the filter still serves its connection.
    // This is the layer of a connection that has its descriptor, until the filter is removed.
    var isCurrent: Bool { !isRemoved && !hasFailed && connection.lifecycle.hasDescriptor }

    /// Processes the output of a call. `write` is the promise of the bytes to send, if any.
    func takeUp(_ output: FilterOutput, _ write: PromiseCore?) {
        let connection = connection
        var write = write
        if !isCurrent || connection.failure != nil {
            // The call, or a turn of the loop inside it, has ended the connection.
            let closed = SystemError(connection.writeCall, ECANCELED, detail: "the connection was closed")
            write.take()?.reject(connection.reportedFailure ?? closed)
        }
        guard isCurrent else { return }
        if !output.delivered.isEmpty && connection.lifecycle.isOpen && !inputHasEnded {
            hasNewInput = true
            deliveredCount += output.delivered.count
            connection.appendInput(output.delivered)
        }
        if output.isReady { isReady = true }
        if output.endsInput { inputHasEnded = true }
        if output.removesFilter && output.error == nil { isRemoved = true }
        expectsWrite =
            output.error == nil && isReady && !isRemoved && !hasSentEnd && connection.lifecycle == .open
            && connection.loop.isBeingDriven && (!output.delivered.isEmpty || output.isReady && hasBegunHandshake)
        queueOutput(output.sent, output.error == nil ? write : nil)
        expectsWrite = false
        if let error = output.error {
            inputHasEnded = true
            fail(error)
            write?.reject(error)
        }
    }

    /// Does whatever the output of a call has made possible: deferred writes, the end record, the end of the filter,
    /// the pending read. Called last, at the end of each event.
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
        if connection.layer === self, isRemoved { remove() }
        if isEndDue && deferred.isEmpty && connection.lifecycle.hasDescriptor { sendDueEnd() }
        connection.updateCongestion()
        // A filter may have taken deferred writes without any output.
        connection.signalWritableIfNeeded()
        serveRead(isInEvent: isInEvent)
    }

    // MARK: The end

    /// Ends both directions because of an error of the filter. Its output is still sent, and then the end.
    func fail(_ error: any Error, _ code: CInt = EPROTO) {
        guard connection.layer === self, connection.failure == nil, connection.lifecycle.hasDescriptor else { return }
        let failure = error as? SystemError ?? SystemError(connection.readCall, code, detail: "\(error)")
        // The error's description is user code, and may have closed the connection.
        guard connection.failure == nil, connection.lifecycle.hasDescriptor else { return }
        hasFailed = true
        inputHasEnded = true
        isEndDue = false
        hasSentEnd = true
        timer?.cancel()
        connection.ensuredRareState.failure = ConnectionFailure(error: failure, cause: error)
        connection.writer.isCongested = false
        let promises = (connection.writer.queue?.takePromises() ?? []) + connection.takeUnqueuedPromises()
        if connection.lifecycle.isOpen {
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
        timer?.cancel()
        let writes = deferred.takeAll()
        if connection.writer.takesWrites {
            for write in writes { connection.writer.enqueue { $0.append(write.bytes, isFinal: true, write.promise) } }
        }
        connection.layer = nil
    }

    func cancelTimer() { timer?.cancel() }

    func connectionDidEnd(_ failure: SystemError?) {
        timer?.cancel()
        let error = failure ?? SystemError(.send, ECANCELED, detail: "the connection was closed")
        for promise in takeDeferredPromises() { promise.reject(error) }
    }
}
