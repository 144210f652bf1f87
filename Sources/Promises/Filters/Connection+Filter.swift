import Glibc
import Reactor

// A filter between the bytes of a connection and its users: installing it, its handshake, its failure and its end.

extension Connection {
    /// Puts `filter` between the bytes of this connection and its users, and fulfills the promise with this connection when the
    /// filter is ready: after its handshake, or at once if it has none.
    ///
    /// ```swift
    /// connect(to: address).then { $0.filter(TLSClient(name: "example.org")) }.then { connection in
    ///     connection.write(request)
    /// }
    ///
    /// listener.serve(onError: { error, connection in log("\(connection): \(error)") }) { connection in
    ///     connection.filter(TLSServer(certificate)).then { connection in converse(connection) }
    /// }
    /// ```
    ///
    /// Everything works through a filter as without it: reads, frames and chunks of plain bytes, writes, backpressure,
    /// half-close, time-outs, `close`. What differs:
    /// - until the filter is ready, reads, writes and `shutdownWrite` are refused with `EBUSY`; the connection is not idle for
    ///   `Listener.drain`;
    /// - `shutdownWrite` and `close` send the end record of the filter behind the queued writes. `abort`, and releasing the
    ///   last reference, do not;
    /// - a write that waits for the kernel cannot be withdrawn: its bytes have become a part of the stream. To cancel it has
    ///   no effect;
    /// - writes are not gathered: each is fulfilled when the kernel has taken what the filter has made of it;
    /// - `bytesReceived` and `bytesSent` count the bytes of the descriptor, and `queuedBytes`, watermarks and
    ///   `writeQueueLimit` those that the filter has made; `bufferedByteCount` counts plain bytes;
    /// - `peerGone` reports the end of the descriptor, or an end record that a read has met; it reads nothing itself;
    /// - `detach` is refused.
    ///
    /// Nothing is read from the kernel while no read waits, except during the handshake and while the filter needs input to
    /// write (`FilterOutput.waitForInput`). Nothing is read either while the kernel does not take 64 KiB of output that belongs
    /// to no write, such as answers to pings: a peer that sends and never reads cannot fill the memory. Each output counts with
    /// 192 bytes more, for its entry in the queue.
    ///
    /// A filter that needs input is read for nevertheless, since its peer may read only after it has sent that input. The
    /// connection then fails with `ENOBUFS` instead of waiting forever: beyond 1 MiB of such output, and beyond 1 MiB of plain
    /// bytes that no read waits for.
    ///
    /// Bytes that were received before and not consumed are the first input of the filter. Writes that were queued before
    /// leave unfiltered. A connection has one filter at a time. Two layers at once are one filter that calls the other; one
    /// after the other they are two filters, of which the first leaves by `FilterOutput.removeFilter`.
    ///
    /// The promise is rejected with
    /// - the error that the filter throws, or `ConnectionFilterError.truncated` if the peer ends during the handshake;
    /// - `PromiseError.timedOut` after `timeout`;
    /// - a `SystemError`: `EBUSY` if the connection has a filter, or if a read waits; `ENOBUFS` beyond the limits above; `EBADF` if it is closed or has one direction
    ///   only; `EPIPE` if one of its directions has ended; `ECANCELED` if it is closed during the handshake; the error of
    ///   the connection.
    ///
    /// After an error, a time-out or a cancellation during the handshake the connection has failed: close it.
    /// - Parameter timeout: the limit for the handshake; `nil` for none.
    /// - Parameter filter: the layer between the bytes of the connection and its users.
    /// - Parameter file: the file that reports name; the caller's by default.
    /// - Parameter line: the line that reports name.
    /// - Returns: a promise of this connection.
    public func filter(
        _ filter: some ConnectionFilter, timeout: Duration? = .seconds(10), file: StaticString = #fileID,
        line: UInt = #line
    ) -> Promise<Connection> {
        Promise(startFilter(filter, timeout).core.traced(root: "filter", Promise<Connection>.self, file, line))
    }

    /// The filter of this connection, from the call of `filter` until the connection is closed or the filter is removed; `nil`
    /// without one. For what a filter knows beyond its bytes, such as the certificate of a TLS peer. Of a struct it is a
    /// copy of the state between two calls.
    public var installedFilter: (any ConnectionFilter)? {
        loop.assertOwner()
        guard let filter = cold?.filter, !filter.isRemoved, !filter.isCalling else { return nil }
        return filter.filter
    }

    private func startFilter(_ new: any ConnectionFilter, _ timeout: Duration?) -> Promise<Connection> {
        loop.assertOwner()
        sendGathered()
        if let refusal = refusalOfFilter { return Promise(refused: refusal) }
        let filter = InstalledFilter(new)
        var received = takeInput(bufferedByteCount)
        let core = IOPromise(Connection.self, self)
        ensuredColdState.filter = filter
        traits = kind.diverted
        filter.handshake = core
        reader.wait(core, for: .frame)
        call(filter) { try $0.begin(&$1) }
        if filter.isRemoved {
            // Nothing but the filter has delivered bytes.
            received = takeInput(bufferedByteCount) + received
            if !received.isEmpty { cold?.input.append(received) }
        } else if !received.isEmpty {
            call(filter) { filter, output in try received.withUnsafeBytes { try filter.receive($0.bytes, &output) } }
        }
        proceed(filter)
        if let timeout, filter.handshake != nil, lifecycle.isOpen {
            filter.timer = loop.schedule(after: timeout) { [weak self] in self?.handshakeTimerFired() }
        }
        updateInterest()
        return Promise(core)
    }

    private var refusalOfFilter: (any Error)? {
        if lifecycle.isClosed { return SystemError(writeCall, EBADF, detail: "the connection is closed") }
        if let reportedFailure { return reportedFailure }
        if !kind.isSuperset(of: [.reads, .writes]) {
            return SystemError(writeCall, EBADF, detail: "a filter needs both directions")
        }
        if cold?.filter != nil { return SystemError(writeCall, EBUSY, detail: "the connection has a filter") }
        if reader.hasEnded { return SystemError(readCall, EPIPE, detail: "the peer has ended its side") }
        if !reader.isFree { return SystemError(readCall, EBUSY, detail: "another read is waiting") }
        return writer.takesWrites ? nil : SystemError(writeCall, EPIPE, detail: "this side was shut down")
    }

    // MARK: Calls

    /// Calls a method of the filter and takes up its output, unless the filter has been left or is being called.
    func call(
        _ filter: InstalledFilter, for write: WritePromise? = nil,
        _ body: (inout any ConnectionFilter, inout FilterOutput) throws -> Void
    ) {
        guard isCurrent(filter), !filter.isCalling else { return }
        takeUp(filter.call(body), filter, write)
    }

    /// Whether the filter still serves this connection.
    func isCurrent(_ filter: InstalledFilter) -> Bool {
        lifecycle.hasDescriptor && cold?.filter === filter && !filter.isRemoved && cold?.filterError == nil
    }

    /// Takes up what a call has put out. `write` is the promise to which the bytes to send belong, if any.
    func takeUp(_ output: FilterOutput, _ filter: InstalledFilter, _ write: WritePromise?) {
        var write = write
        if !isCurrent(filter) || failure != nil {
            // The call has ended the connection, or turned the loop, which has.
            let closed = SystemError(writeCall, ECANCELED, detail: "the connection was closed")
            write.take()?.reject(reportedFailure ?? closed)
        }
        guard isCurrent(filter), let cold else { return }
        if !output.delivered.isEmpty && lifecycle.isOpen && !filter.inputHasEnded {
            filter.hasNewInput = true
            filter.deliveredCount += output.delivered.count
            cold.input.append(output.delivered)
            noteHeldMemory()
        }
        if output.isReady { filter.isReady = true }
        if output.endsInput { filter.inputHasEnded = true }
        if output.removesFilter && output.error == nil { filter.isRemoved = true }
        queueOutput(output.sent, filter, output.error == nil ? write : nil)
        if let error = output.error {
            filter.inputHasEnded = true
            failFilter(error)
            write?.reject(error)
        }
    }

    /// What the output of a call has made possible: deferred writes, the end record, the end of the filter, the read that
    /// waits. Called last, at the end of each event.
    func proceed(_ filter: InstalledFilter, mayCallBody: Bool = false) {
        if filter.isCalling { return }
        sendDeferredWrites(filter)
        if !filter.isReady && filter.inputHasEnded { failFilter(ConnectionFilterError.truncated) }
        if filter.inputHasEnded {
            endDeferredWrites(filter)
        } else if let shortage = shortage(of: filter) {
            failFilter(shortage)
        }
        if cold?.filter === filter, filter.isRemoved { removeFilter(filter) }
        if filter.isEndDue && !filter.hasDeferredWrites && lifecycle.hasDescriptor { sendDueEnd(filter) }
        // A filter may have taken deferred writes without any output.
        signalWritableIfNeeded()
        serveRead(filter, mayCallBody: mayCallBody)
    }

    /// Rejects the writes for which the filter needs input that the peer will not send, since it has ended its stream.
    private func endDeferredWrites(_ filter: InstalledFilter) {
        guard filter.hasDeferredWrites, failure == nil, !filter.isRemoved else { return }
        let error = SystemError(
            writeCall, EPIPE, detail: "the peer has ended the stream, and the filter needs input to write")
        for promise in filter.takeDeferredPromises() { promise.reject(error) }
    }

    // MARK: Handshake

    private func handshakeTimerFired() {
        guard let filter = cold?.filter, filter.handshake != nil, lifecycle.isOpen else { return }
        // What has reached the kernel in time is not late.
        if !filter.isLate && isReadyInKernel {
            filter.isLate = true
            filter.timer = loop.schedule(after: .zero) { [weak self] in self?.handshakeTimerFired() }
            return
        }
        failFilter(PromiseError.timedOut, ETIMEDOUT)
        proceed(filter)
        updateInterest()
    }

    /// The promise of a read was cancelled: if it is that of the handshake, the stream cannot continue.
    func cancelHandshake(_ promise: PromiseCore) {
        guard let filter = cold?.filter, filter.handshake === promise else { return }
        filter.handshake = nil
        failFilter(SystemError(readCall, ECANCELED, detail: "the handshake was cancelled"))
        proceed(filter)
        updateInterest()
    }

    // MARK: Failing

    /// The error with which operations are rejected, if the connection has failed.
    var reportedFailure: (any Error)? { cold?.filterError ?? failure }

    /// The error that rejects the promise of a read or write that has failed with `error`.
    func reported(_ error: SystemError) -> any Error {
        guard let cold, let filterError = cold.filterError, error == cold.failure else { return error }
        return filterError
    }

    /// Ends both directions because of an error of the filter. What the filter has sent is still delivered, and then the end.
    func failFilter(_ error: any Error, _ code: CInt = EPROTO) {
        guard let cold, let filter = cold.filter, failure == nil, lifecycle.hasDescriptor else { return }
        let failure = error as? SystemError ?? SystemError(readCall, code, detail: "\(error)")
        // The description of the error is the user's, and may have closed the connection.
        guard self.failure == nil, lifecycle.hasDescriptor else { return }
        cold.failure = failure
        cold.filterError = error
        filter.inputHasEnded = true
        filter.isEndDue = false
        filter.hasSentEnd = true
        filter.timer?.cancel()
        writer.isCongested = false
        let queued = writer.queue?.takePromises() ?? []
        let promises = queued + filter.takeDeferredPromises() + (cold.ending.map { [$0] } ?? [])
        cold.ending = nil
        if lifecycle.isOpen {
            if writer.end() == .sendEnd { sendEnd() }
        } else if !writer.isQueued {
            lingerIfDelivered()
        }
        for promise in promises { promise.reject(error) }
        if watchedEnds != 0 { settlePeerWatches(as: .failed(failure)) }
        // However long the queue is: the connection takes no more writes.
        endCongestion()
    }

    // MARK: Removing

    /// The descriptor has been closed. Called last, since it may release an object of the user's.
    func release(_ filter: InstalledFilter) {
        filter.rejectDeferredWrites(failure)
        cold?.filter = nil
    }

    /// Makes this a connection without a filter.
    private func removeFilter(_ filter: InstalledFilter) {
        filter.timer?.cancel()
        let deferred = filter.takeDeferred()
        if !deferred.isEmpty, writer.takesWrites {
            let queue = writer.queue ?? WriteQueue()
            for write in deferred { queue.appendFinal(write.bytes, write.promise) }
            writer.enqueue(queue)
        }
        if lifecycle.isOpen { traits = kind }
        cold?.filter = nil
    }
}
