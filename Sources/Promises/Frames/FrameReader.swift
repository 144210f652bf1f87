import Glibc
import Reactor

/// A connection's reads that wait for frames, and their time limits. Made by the first of them.
///
/// It reads the connection's buffered input, and makes the connection wait for more.
@usableFromInline
final class FrameReader: FrameReading {
    // Not counted, as each access would be: the connection retains this object, and its other owner, a frame loop,
    // retains the connection too. `@exclusivity(unchecked)`: one thread, and no user code is called during an access.
    private let reference: Uncounted<Connection>
    private var connection: Connection { reference.object }
    /// The frame of a pending read.
    @exclusivity(unchecked) private var pending: PendingFrame?
    /// The number of frame loops: more than one if the body of one has begun another.
    // In four bytes after `pending`, with the next field, so that a block of 64 bytes is enough.
    @exclusivity(unchecked) private var loops: UInt16 = 0
    /// The length of the last frame of a loop in KiB, if it was large: the next one is probably as large, and is
    /// received in place from its first byte.
    @exclusivity(unchecked) private var expected: UInt16 = 0
    /// Set with `frameTimeouts`.
    @exclusivity(unchecked) private(set) var clock: FrameClock?

    /// Settles the promise of a read.
    @usableFromInline typealias Settling = (PromiseCore) -> Void
    /// Decodes the input again. Returns a closure that settles the read, or `nil` if the frame is still incomplete;
    /// throws the error to reject it with.
    @usableFromInline typealias Decoding = (_ connection: Connection, _ missing: inout Int) throws -> Settling?

    /// An incomplete frame.
    private struct PendingFrame {
        /// `nil` if the promise waits only for the bytes: `forEachFrame` decodes them itself, so that its waits need no
        /// closures.
        let decode: Decoding?
        /// At most 4 GiB: the decoder of a longer frame is called once on the way.
        private var count: UInt32

        /// The minimum number of bytes that it needs.
        var missing: Int {
            get { Int(count) }
            set { count = UInt32(clamping: newValue) }
        }

        init(missing: Int, decode: Decoding?) {
            self.decode = decode
            count = UInt32(clamping: missing)
        }
    }

    private init(_ connection: Connection) { reference = Uncounted(connection) }

    /// The reader of `connection`; made by the first access.
    @usableFromInline
    static func of(_ connection: Connection) -> FrameReader {
        if let reader = existing(of: connection) { return reader }
        let made = FrameReader(connection)
        connection.ensuredColdState.frames = made
        return made
    }

    static func existing(of connection: Connection) -> FrameReader? { connection.cold?.frames as? FrameReader }

    // MARK: Waiting

    /// Settles `core` with `ended`, or waits for `missing` bytes, which `decode` then decodes.
    /// - Parameter held: the memory of the decoder, in bytes.
    @usableFromInline
    static func wait(
        _ core: PromiseCore, for missing: Int, of connection: Connection, ended: Settling?, held: Int,
        _ decode: @escaping Decoding
    ) {
        if let ended { return ended(core) }
        // The payload of any type's `Produced`.
        core.payload.store(Produced<Void>(producer: connection))
        of(connection).startWaiting(
            .retaining(core), for: PendingFrame(missing: missing, decode: decode), of: connection, held)
    }

    /// Notes that the decoder of a continuing read, or of a loop that waits for its body, holds `count` bytes.
    @usableFromInline
    static func noteHeld(_ count: Int, by connection: Connection) { connection.noteHeldMemory(inDecoder: count) }

    /// Returns a closure that settles a read of a frame after the end of the stream; `nil` before it.
    /// - Parameter none: settles a read that may end between two frames, if the stream has ended there.
    @usableFromInline
    static func end(
        of connection: Connection, _ none: Settling?, expecting expectation: @autoclosure () -> StreamError.Expectation
    ) -> Settling? {
        guard connection.reader.hasEnded else { return nil }
        if let failure = connection.reportedFailure { return { $0.reject(failure) } }
        let count = connection.bufferedByteCount
        if let none, count == 0 { return none }
        let error = StreamError.endedEarly(expected: expectation(), got: count)
        return { $0.reject(error) }
    }

    private func startWaiting(
        _ core: CoreRef, for frame: PendingFrame, of connection: Connection, _ held: Int, updatesInterest: Bool = true
    ) {
        pending = frame
        if clock != nil { updateDeadline(connection) }
        connection.noteHeldMemory(inDecoder: held, awaiting: frame.missing)
        connection.requestInput(.frame, for: core, updatesInterest: updatesInterest)
        if frame.decode == nil { connection.mayBeIdle() }
    }

    /// The state is final before a handler is called.
    func stopWaiting() {
        // The decoder of a single read is released with it.
        if pending?.decode != nil { connection.cold?.memory?.inDecoder = 0 }
        pending = nil
        guard let clock else { return }
        clock.waiting = nil
        reference.borrow { clock.endWait(at: $0.loop) }
    }

    // MARK: Events

    var isLoopWaiting: Bool { pending.map { $0.decode == nil } ?? false }
    func cancelTimer(on loop: EventLoop) { clock?.cancelTimer(on: loop) }

    /// If more bytes than this are missing, a read requests only these, and receives them in place: the array that
    /// collects them can then be returned without a copy. Otherwise it requests the next frames too, whose copy costs
    /// less than another call.
    private static var largestReadAhead: Int { 4096 }
    /// A frame of at least this length makes the loop expect more of them.
    private static var leastExpected: Int { 16_384 }
    /// The maximum room to reserve for a frame before any of it has arrived.
    private static var mostExpected: Int { 1 << 20 }

    func descriptorIsReadable() { reference.borrow { read($0) } }

    private func read(_ connection: Connection) {
        guard let missing = pending?.missing else { return }
        let isLarge = missing > Self.largestReadAhead
        if isLarge || expected != 0 && isLoopWaiting && !connection.hasInput {
            if let count = receiveInPlace(isLarge ? missing : nil, connection) { didReceive(count, connection) }
        } else if connection.hasInput {
            let buffer = connection.loop.scratch
            guard let count = connection.receiveOnce(into: buffer) else { return }
            if count > 0 { connection.input.append(UnsafeRawBufferPointer(rebasing: buffer[..<count])) }
            didReceive(count, connection)
        } else {
            receiveAndLend(missing, connection)
        }
    }

    /// Receives the first bytes of a frame, and lends them in place; unconsumed bytes are buffered.
    @inline(never)
    private func receiveAndLend(_ missing: Int, _ connection: Connection) {
        // Lent to code that may turn the loop, or close the connection.
        let buffer = connection.loop.borrowScratch()
        defer {
            // Normally taken by the code that it was passed to; it must never outlive the buffer.
            _ = connection.loop.takeReceived()
            connection.loop.giveBack(buffer)
        }
        guard let count = connection.receiveOnce(into: buffer) else { return }
        let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<max(count, 0)])
        let isFrameLoop = connection.reader.isFrameLoop
        if count < missing || !isFrameLoop && isLoopWaiting {
            if count > 0 { connection.input.append(bytes) }
            return didReceive(count, connection)
        }
        connection.loop.pass(received: bytes)
        guard isFrameLoop, let (reference, _) = connection.reader.takeReference() else {
            return didReceive(count, connection)
        }
        stopWaiting()
        // The reader's reference is the running one.
        reference.object.as(FrameLoopCore.self).runNow()
    }

    /// The unbuffered bytes that a loop or a decoder is called with; `nil` if it is called for buffered ones.
    @usableFromInline
    static func takeReceived(by connection: Connection) -> UnsafeRawBufferPointer? { connection.loop.takeReceived() }

    private func didReceive(_ count: Int, _ connection: Connection) {
        let ended = count > 0 ? nil : connection.noteEnd(count)
        inputArrived(count, ended: ended, at: connection)
        if count < 0 { connection.failWrites() }
    }

    /// - Parameter missing: the number of missing bytes of a large frame; `nil` for the beginning of one that may
    ///   become as large as the last.
    @inline(never)
    private func receiveInPlace(_ missing: Int?, _ connection: Connection) -> Int? {
        if let missing {
            if isLoopWaiting { expected = UInt16(clamping: (connection.bufferedByteCount + missing + 1023) >> 10) }
            return connection.input.receive(missing)
        }
        let room = min(Int(expected) << 10, Self.mostExpected)
        let count = connection.input.receive(room, expecting: room)
        if let count, count < Self.leastExpected { expected = 0 }
        return count
    }

    func inputArrived(_ count: Int, ended: PromiseCore?) {
        reference.borrow { inputArrived(count, ended: ended, at: $0) }
    }

    private func inputArrived(_ count: Int, ended: PromiseCore?, at connection: Connection) {
        guard let frame = pending else { return }
        var missing = frame.missing
        let settling: Settling?
        if count > 0, count < missing {
            // Not even the missing bytes have arrived: no decoder needs to look at them again.
            missing -= count
            settling = nil
        } else if let decode = frame.decode {
            let waiting = connection.reader.promise
            do { settling = try decode(connection, &missing) } catch { settling = { $0.reject(error) } }
            // The decoder is user code: it may have cancelled this read, and begun another one.
            guard connection.reader.promise === waiting else { return }
        } else if count <= 0, let failure = connection.reportedFailure {
            settling = { $0.inputDidArrive(failure) }
        } else {
            settling = { $0.inputDidArrive(nil) }
        }
        guard let settling else {
            pending?.missing = missing
            if clock != nil { updateDeadline(connection) }
            return
        }
        let promise = ended ?? connection.reader.take()?.promise
        stopWaiting()
        if let promise { settling(promise) }
    }

    // MARK: Loops

    /// A `forEachFrame` or `forEachLine` begins.
    @usableFromInline
    func beginLoop() { loops &+= 1 }

    /// Later reads do not wait for this side's answers.
    @usableFromInline
    func beginReadingAhead() {
        if connection.refusalToRead == nil { connection.reader.readsAhead = true }
    }

    @usableFromInline
    func endLoop() {
        connection.cold?.memory?.inDecoder = 0
        loops &-= 1
        if loops == 0 { endMessages() }
    }

    func endWaitingLoop() -> Bool {
        guard isLoopWaiting, let promise = connection.reader.take()?.promise else { return false }
        // A loop that is about to wait ends instead.
        connection.attachment?.endsFrameLoop = true
        stopWaiting()
        connection.updateInterest()
        promise.inputDidArrive(nil)
        return true
    }

    /// Whether a loop that begins has nothing to do before there is input.
    @usableFromInline
    static func mayWait(_ connection: Connection) -> Bool {
        connection.bufferedByteCount == 0 && connection.refusalToRead == nil && !connection.reader.hasEnded
    }

    /// Resumes a loop when `missing` more bytes have arrived, or with the failure of the connection.
    /// - Parameters:
    ///   - core: has its operation in its payload. Its running reference passes to the connection.
    ///   - held: the memory of its decoder, in bytes.
    ///   - isInEvent: whether the connection's event has called the loop, and updates the interest when that has
    ///     returned.
    @usableFromInline
    func resume(_ core: PromiseCore, whenArrived missing: Int, held: Int, isInEvent: Bool) {
        core.upstream.store(.none)
        reference.borrow {
            startWaiting(
                core.ref, for: PendingFrame(missing: missing, decode: nil), of: $0, held, updatesInterest: !isInEvent)
        }
    }

    /// A promise of `missing` more bytes; `nil` if the stream has ended between two frames, or a drain ends it there.
    func moreInput(
        missing: Int, held: Int, _ expectation: @autoclosure () -> StreamError.Expectation
    ) throws -> PromiseCore? {
        guard try mayContinue(expectation()) else { return nil }
        let core = PromiseCore.pending(Void.self, by: connection)
        startWaiting(.retaining(core), for: PendingFrame(missing: missing, decode: nil), of: connection, held)
        return core
    }

    /// Whether more input may come; false if the stream has ended between two frames, or a drain ends it there.
    @usableFromInline
    func mayContinue(_ expectation: @autoclosure () -> StreamError.Expectation) throws -> Bool {
        try reference.borrow { try mayContinue($0, expectation) }
    }

    private func mayContinue(_ connection: Connection, _ expectation: () -> StreamError.Expectation) throws -> Bool {
        guard connection.reader.hasEnded else {
            if let attachment = connection.attachment, attachment.endsFrameLoop, !connection.hasInput {
                attachment.endsFrameLoop = false
                return false
            }
            if let refusal = connection.refusalToRead { throw refusal }
            return true
        }
        if let failure = connection.reportedFailure { throw failure }
        let count = connection.bufferedByteCount
        if count == 0 { return false }
        throw StreamError.endedEarly(expected: expectation(), got: count)
    }

    /// As `Connection.refusalToRead`, for a loop that looks for its next frame: this begins a message, unless the loop
    /// is in the body of another.
    /// - Parameters:
    ///   - connection: the reader's connection. Read from a property, it would be counted for each frame.
    ///   - unbuffered: the number of received bytes that are neither consumed nor buffered.
    @usableFromInline
    func refusalToBeginFrame(of connection: Connection, unbuffered: Int = 0) -> SystemError? {
        if let clock, loops < 2 { clock.beginMessage(of: connection, unbuffered: unbuffered) }
        return connection.refusalToRead
    }

    // MARK: Time

    var limits: FrameTimeouts? {
        get { clock?.limits }
        set {
            cancelTimer(on: connection.loop)
            clock = newValue.map { FrameClock($0, of: connection, continuing: clock) }
            if newValue != nil && pending != nil { updateDeadline(connection) }
        }
    }

    func beginMessage() { clock?.beginMessage(of: connection) }

    /// Reads after a frame loop are separate messages.
    func endMessages() { clock?.endMessages() }

    /// Notes that a decoder skips the first `count` of the buffered bytes, before they are dropped.
    @usableFromInline @inline(never)
    static func noteSkipped(_ count: Int, by connection: Connection) {
        guard let clock = existing(of: connection)?.clock else { return }
        clock.skip(count, at: connection.deliveredByteCount - connection.bufferedByteCount)
    }

    /// Computes the deadline of a read that begins to wait, or that has received a part of its frame.
    private func updateDeadline(_ connection: Connection) {
        // A frame of the outer loop begins a message, not one of a loop in its body.
        clock?.waiting = Uncounted(self)
        clock?.update(
            received: connection.deliveredByteCount, buffered: connection.bufferedByteCount,
            beginsMessage: isLoopWaiting && loops < 2, at: connection.loop.now)
        armTimer()
    }

    /// Starts the timer. One that fires before the deadline is kept, and is set anew when it fires.
    private func armTimer() {
        reference.borrow { connection in
            guard let clock, let moment = clock.momentToArm(on: connection.loop) else { return }
            startTimer(clock, at: moment, on: connection.loop)
        }
    }

    /// The timer does not keep the loop alive, since it outlives the read. The read does.
    private func startTimer(_ clock: FrameClock, at moment: LoopInstant, on loop: EventLoop) {
        // Without a reference to the connection: a weak one would make all others dearer to count.
        let timer = loop.addBackgroundTimer(at: moment) {
            clock.timerDidFire()
            // If no read waits, the next one starts the timer.
            clock.waiting?.object.timerFired()
        }
        clock.timerDidStart(timer)
    }

    private func timerFired() {
        // Retained until the end: the poller may retain the connection only for this read.
        let connection = connection
        defer { withExtendedLifetime(connection) {} }
        guard let clock, connection.lifecycle.isOpen, pending != nil else { return }
        guard clock.deadline <= connection.loop.now else { return armTimer() }
        // Bytes that have reached the kernel in time are not late: they are read before the limit applies.
        if clock.mayPostpone && connection.isReadyInKernel {
            clock.postpone()
            return startTimer(clock, at: connection.loop.now, on: connection.loop)
        }
        guard let waiter = connection.reader.take() else { return }
        if pending?.decode != nil { connection.cold?.memory?.inDecoder = 0 }
        pending = nil
        clock.waiting = nil
        let got = clock.expire(received: connection.deliveredByteCount) ?? connection.bufferedByteCount
        connection.updateInterest()
        waiter.promise.inputDidArrive(StreamError.timedOut(got: got))
    }
}
