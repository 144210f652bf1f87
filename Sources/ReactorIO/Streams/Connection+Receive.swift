import Promises
import Reactor
import ReactorLibc

// Waiting for input. `InputLoop` has the rest of every kind of read.

extension Connection {
    /// The number of bytes received so far, after the filter.
    var deliveredByteCount: Int { cold?.filter?.deliveredCount ?? bytesReceived }

    // MARK: Waiting

    /// Takes over the caller's reference to `core`, until input arrives.
    /// - Parameters:
    ///   - count: the number of further bytes to wait for, or the maximum to receive for `bytes` and `array`.
    ///   - held: the memory that the decoder keeps, in bytes.
    ///   - updatesInterest: false if the caller does so before it calls anything else.
    @usableFromInline @inline(__always)
    func wait(_ core: CoreRef, _ form: InputForm, for count: Int, held: Int, updatesInterest: Bool) {
        var count = count
        if form.isOfFrames { prepareToWait(form, for: &count, held: held) }
        reader.keep(core, form, count)
        sendGathered()
        if updatesInterest { updateInterest() }
        if form == .frames { mayBeIdle() }
    }

    @inline(never)
    private func prepareToWait(_ form: InputForm, for count: inout Int, held: Int) {
        cold?.frameClock?.update(form, of: self)
        noteHeldMemory(inDecoder: held, awaiting: count)
        // A decoder that waits for more than 4 GiB is also called once before.
        count = min(count, Int(CInt.max)) + min(bufferedByteCount, Int(CInt.max))
    }

    /// Returns true when a loop has nothing to do before there is input. A loop over chunks already has the reader.
    @usableFromInline
    func mustWait(_ form: InputForm) -> Bool {
        !hasInput && !reader.hasEnded && (form == .chunk || !reader.isDraining && refuseRead() == nil)
    }

    /// Returns true when more input may come; false if the stream has ended between two frames.
    @usableFromInline
    func mayContinue(_ form: InputForm, _ expectation: @autoclosure () -> StreamError.Expectation) throws -> Bool {
        guard reader.hasEnded else {
            // At the last call of a drain, reads inside a frame and loops are not refused.
            let isBegun = reader.isLastCall && (hasInput || form == .frames)
            if let refusal = isBegun ? refusalToContinue : refuseRead() { throw refusal }
            return true
        }
        if let failure = reportedFailure { throw failure }
        let count = bufferedByteCount
        if count == 0 { return false }
        throw StreamError.endedEarly(expected: expectation(), got: count)
    }

    /// At the last call of a drain, notes that the drain has ended the input.
    /// - Returns: the error of the read; `nil` if it can begin.
    @usableFromInline @inline(__always)
    func refuseRead() -> SystemError? {
        loop.assertOwner("a read")
        // The usual case first, without a call.
        if lifecycle.isOpenOrFailed && reader.isFree && path == .direct && kind.contains(.reads) && !reader.isLastCall {
            return nil
        }
        return refuseReadSlow()
    }

    @inline(never)
    private func refuseReadSlow() -> SystemError? {
        refusalToContinue ?? (reader.isLastCall ? refuseAtLastCall() : nil)
    }

    @inline(never)
    var refusalToContinue: SystemError? {
        if let refusal = refusal(of: readCall, .reads) { return refusal }
        if lifecycle.isOpenOrFailed && reader.isFree { return nil }
        return refusalInHandshake(readCall) ?? SystemError(readCall, EBUSY, detail: "another read is waiting")
    }

    // MARK: The descriptor is readable

    @inline(__always)
    func receiveInput() {
        let form = reader.form
        if form.rawValue > InputForm.chunk.rawValue || hasInput || form.isOfBytes && reader.expectsMuch {
            return receiveIntoInput(form)
        }
        // Borrowed, because its users may turn the loop, which also reads, or close the connection.
        let buffer = loop.borrowScratch()
        defer { loop.giveBack(buffer) }
        guard let count = receiveOnce(into: buffer, atMost: form.isOfBytes ? Int(reader.count) : .max) else { return }
        guard count > 0 else { return streamDidEnd(count) }
        guard let core = reader.take() else { return }
        let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<count])
        // Direct calls, which cost less.
        if form == .chunk { return InputLoop<ChunkLoop>.resume(core, with: bytes, isInEvent: true) }
        reader.noteSize(count)
        if form == .array { return InputLoop<ArrayRead>.resume(core, with: bytes, isInEvent: true) }
        InputLoop<ByteRead>.resume(core, with: bytes, isInEvent: true)
    }

    /// If more bytes than this are missing, a read requests only the missing ones and receives them in place, so that
    /// their array can be returned without a copy. Otherwise it also requests the next frames, because copying them
    /// costs less than another call.
    private static var largestReadAhead: Int { 4096 }

    /// Like `receiveInput`, for frames, large pieces and buffered input.
    @inline(never)
    private func receiveIntoInput(_ form: InputForm) {
        // A handshake waits on the path `.filtered`.
        if form == .handshake { return }
        let missing = Int(reader.count) - bufferedByteCount
        if form.isOfFrames && missing > Self.largestReadAhead {
            if form == .frames { reader.noteSize(Int(reader.count)) }
            return inputWasReceived(receiveInPlace(missing))
        }
        // The size of a single frame does not predict the next: a short head may follow a large body.
        if form != .frame && form != .chunk && !hasInput && reader.expectsMuch {
            let room = form.isOfBytes ? min(reader.expectedRoom, missing) : reader.expectedRoom
            let count = receiveInPlace(room, expecting: room)
            if let count { reader.noteSize(max(count, 0)) }
            return inputWasReceived(count)
        }
        let buffer = loop.borrowScratch()
        defer {
            // The code that got the bytes has normally taken them. They must never outlive the buffer.
            _ = loop.takeReceived()
            loop.giveBack(buffer)
        }
        guard let count = receiveOnce(into: buffer) else { return }
        let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<max(count, 0)])
        if !hasInput && count >= missing {
            if let core = takeReader() { resume(core, with: bytes) }
        } else {
            if count > 0 { appendInput(bytes) }
            inputWasReceived(count)
        }
    }

    private func inputWasReceived(_ count: Int?) {
        guard let count else { return }
        if count > 0 { inputDidArrive(isInEvent: true) } else { streamDidEnd(count) }
    }

    /// - Parameter limit: the maximum number of bytes; at least one, since reading none would look like the end.
    /// - Returns: the number of bytes; 0 at the end of the stream, and the negative errno of an error. `nil` if there
    ///   was nothing to read, or `readRate` pauses.
    @inline(__always)
    func receiveOnce(into buffer: UnsafeMutableRawBufferPointer, atMost limit: Int = .max) -> Int? {
        if notesActivity { return receiveTimed(into: buffer, atMost: limit) }
        return didReceive(callReceive(into: buffer, atMost: limit))
    }

    /// Counts received bytes. All input of a connection comes through here.
    /// - Returns: the same as `receiveOnce`.
    @inline(__always)
    func didReceive(_ count: Int) -> Int? {
        if count == -Int(EAGAIN) {
            noteSpuriousReadiness(readCall)
            return nil
        }
        if count > 0 { bytesReceived += count }
        return count
    }

    /// - Parameter result: 0 at the end of the input, and the negative errno of an error.
    @inline(never)
    func streamDidEnd(_ result: Int) {
        reader.end()
        if result < 0 { noteFailure(SystemError(readCall, CInt(-result))) }
        inputDidArrive(isInEvent: true)
        if result < 0 { failWrites() }
    }

    /// Continues the waiting promise if the buffered input, or the end of the stream, is enough for it.
    /// - Parameter isInEvent: true for an event of the descriptor, after which the interest is updated. If false, a job
    ///   calls the body of a loop.
    func inputDidArrive(isInEvent: Bool) {
        let form = reader.form
        if form.isOfFrames && bufferedByteCount < reader.count && !reader.hasEnded {
            if reader.isWaiting { cold?.frameClock?.update(form, of: self) }
            return
        }
        guard let core = takeReader() else { return }
        if isInEvent {
            resume(core, with: UnsafeRawBufferPointer(start: nil, count: 0))
        } else if form.continuesInJob {
            core.borrow { $0.enqueueAgain() }
        } else {
            resume(core, with: nil)
        }
    }

    private func resume(_ core: CoreRef, with received: UnsafeRawBufferPointer?) {
        if let received { loop.pass(received: received) }
        core.inputDidArrive()
    }

    /// Takes the bytes received in this event; `nil` outside of an event.
    @usableFromInline
    func takeReceived() -> UnsafeRawBufferPointer? { loop.takeReceived() }

    // MARK: Ending the wait

    /// Takes the reader's promise, and notifies the frame clock.
    func takeReader() -> CoreRef? {
        guard let core = reader.take() else { return nil }
        if reader.form.isOfFrames {
            if reader.form == .frame { cold?.memory?.inDecoder = 0 }
            cold?.frameClock?.endWait(at: loop)
        }
        return core
    }

    func rejectRead(_ error: any Error) {
        let form = reader.form
        guard let core = takeReader() else { return }
        if form == .handshake { return core.takeOver().reject(error) }
        let source = PromiseCore(error: error)
        // In a job, because the loop's body may recover.
        if form == .frames { return source.attach(core.object, owned: core) }
        core.run(rejectedAs: source)
    }

    func cancelRead(_ reason: StaticString = "the connection was closed") {
        if reader.isWaiting {
            let isAsked = failure?.isCancellation ?? true
            rejectRead(reported(SystemError(ended: readCall, isCancellation: isAsked, detail: "\(reason)")))
        }
        PeerWatching.settle(as: nil, at: self)
    }

    func endRead(_ error: SystemError) {
        reader.end()
        rejectRead(reported(error))
    }

    /// - Returns: false if `promise` does not wait for input.
    func withdrawRead(_ promise: PromiseCore) -> Bool {
        guard reader.isWaiting(promise), let core = takeReader() else { return false }
        cold?.filter?.readWasCancelled(promise)
        updateInterest()
        core.release()
        return true
    }
}
