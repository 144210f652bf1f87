import Glibc
import Reactor

/// A stream of bytes on this thread's loop: a TCP connection, made by `connect(to:)` or by a `Listener`; one end of a
/// `pair()`; one end of a `pipe()`; or a descriptor of your own, adopted by `init(adopting:)`.
///
/// ```swift
/// connection.read().then { outcome -> Promise<Void> in
///     guard case .bytes(let bytes) = outcome else { return .value }
///     return connection.write(bytes)
/// }.ensure { connection.close() }
/// ```
///
/// Reading and writing are independent of each other. The connection reads only on demand, so not reading pauses the
/// peer: the kernel's buffers fill, and the peer has to wait. An idle connection holds no buffer. A pending operation
/// keeps the connection alive; without one, releasing the last reference closes it.
///
/// Three calls end it:
/// - `shutdownWrite()` ends the write side and leaves the read side open (half-close);
/// - `close()` delivers the queued writes and then ends;
/// - `abort()` drops everything and resets.
public final class Connection: IOProducer {
    // The fields that every message uses come first, together, in two cache lines: at a thousand connections the memory
    // that a message reads costs more than the instructions. Fields that few connections need are in `cold`.
    //
    // `@exclusivity(unchecked)`: one thread, and no field is being changed while code is called that could call back.
    // With checks, these fields cost nine calls of the runtime per message.
    let loop: EventLoop
    @exclusivity(unchecked) var reader = ConnectionReader()
    @exclusivity(unchecked) var writer = ConnectionWriter()
    let fd: CInt
    /// The directions in which the loop watches the descriptor. It follows from the states: call `updateInterest` after
    /// each change.
    @exclusivity(unchecked) var interest: Interest = []
    /// Diverted while there is a filter, and while the connection lingers; see `ConnectionTraits`.
    @exclusivity(unchecked) var traits: ConnectionTraits
    @exclusivity(unchecked) var lifecycle = ConnectionLifecycle.open
    /// What is watched for `peerGone`, as bits of epoll; see Connection+PeerGone.swift. It lies in what would be
    /// padding.
    @exclusivity(unchecked) var watchedEnds: UInt16 = 0
    /// How many answers of `deferDrain` have not settled.
    @exclusivity(unchecked) var pendingAnswers: Int32 = 0
    /// `notWatched` if there is no idle time-out.
    @exclusivity(unchecked) var lastActivity = Connection.notWatched
    /// Bytes that have been read from the kernel so far: before a filter.
    @exclusivity(unchecked) public internal(set) var bytesReceived = 0
    /// Bytes that the kernel has taken so far: behind a filter.
    @exclusivity(unchecked) public internal(set) var bytesSent = 0
    @exclusivity(unchecked) var cold: ColdState?

    /// The peer's address; `nil` if the kernel no longer had it, and where peers have no addresses.
    public let peerAddress: SocketAddress?

    init(_ fd: CInt, _ traits: ConnectionTraits, peer: SocketAddress?, on loop: EventLoop) {
        self.fd = fd
        self.loop = loop
        self.traits = traits
        peerAddress = peer
        if traits.contains(.tcp) { socket.setNoDelay() }
    }

    convenience init(_ socket: Socket, peer: SocketAddress?, isUnix: Bool, on loop: EventLoop) {
        let traits: ConnectionTraits = [.socket, .reads, .writes]
        self.init(socket.fd, isUnix ? traits : traits.union(.tcp), peer: peer, on: loop)
    }

    // Without a pending operation nothing waits, and nothing retains this connection on its behalf. With one, the poller
    // does, or a job for the end of the turn, and the end of the loop ends the operations of both. So a core that refers to
    // the connection, see `beginProduction`, does so while it exists.
    deinit {
        guard lifecycle.hasDescriptor else { return }
        if loop.isOwnedByThisThread { return release() }
        loop.performCleanup { [loop, fd, cold] in
            if !loop.hasEnded {
                cold?.closingTimer?.cancel()
                cold?.idleTimer?.cancel()
                cold?.frameClock?.timer?.cancel()
                cold?.filter?.timer?.cancel()
            }
            loop.closeDescriptor(fd)
            cold?.closing?.fulfill(())
            cold?.settleClosed(otherwise: loop.hasEnded ? .loopEnded : .closed)
            cold?.filter?.rejectDeferredWrites(cold?.failure)
        }
    }

    /// The cold state; made by the first access.
    var ensuredColdState: ColdState {
        if let cold { return cold }
        let made = ColdState()
        cold = made
        return made
    }

    var socket: Socket { Socket(fd, loop.kernel) }

    /// The address of this side; `nil` once the connection is closed, and where there are no addresses. Costs one
    /// system call.
    public var localAddress: SocketAddress? {
        lifecycle.hasDescriptor && kind.contains(.socket) ? socket.localAddress : nil
    }

    /// Whether `close` or `abort` has been called.
    public var isClosed: Bool { lifecycle.isClosed }

    /// Bytes of writes that the kernel has not taken yet. With a filter these are the bytes that the filter has made of
    /// them.
    public var queuedBytes: Int { queueLength + (cold?.filter?.deferredBytes ?? 0) }

    /// The bytes that wait for the kernel.
    var queueLength: Int { writer.isGathering ? cold?.gathered.count ?? 0 : writer.queue?.count ?? 0 }

    // The first error of the descriptor. The kernel reports it once and then pretends an orderly end.
    var failure: SystemError? { cold?.failure }

    func noteFailure(_ error: SystemError) {
        ensuredColdState.failure = error
        lifecycle.fail()
    }

    /// Ends the read, write or watch of `promise`, which was cancelled. After a read, input is kept for the next one.
    /// - Returns: false if none belongs to `promise`, or if the kernel has taken a part of the write.
    func stop(_ promise: PromiseCore) -> Bool {
        withdrawRead(promise) || withdrawWrite(promise) || withdrawPeerWatch(ObjectIdentifier(promise))
    }

    // MARK: Failing

    /// The descriptor can no longer be written to. What the peer sent before may still be read.
    /// - Parameter losesOutput: whether bytes that the program has written, and that are no longer queued, are lost.
    func fail(_ error: SystemError, losesOutput: Bool = false) {
        if failure == nil { noteFailure(error) }
        failWrites(losesOutput: losesOutput)
        if lifecycle.isOpen { updateInterest() } else { release() }
    }

    /// Closes the descriptor. The number is never used again: it may belong to another descriptor by then.
    func release(as end: ConnectionLifecycle = .closed) {
        // An inline handler of an operation that has just failed or was cancelled may have closed it meanwhile.
        guard lifecycle.release(as: end) else { return }
        interest = []
        cold?.closingTimer?.cancel()
        cancelTimers()
        cancelRead()
        loop.closeDescriptor(fd)
        dropInput()
        if let closing = cold?.closing {
            cold?.closing = nil
            closing.fulfill(())
        }
        cold?.settleClosed(otherwise: loop.hasEnded ? .loopEnded : .closed)
        if let filter = cold?.filter { release(filter) }
    }
}

extension Connection: CustomStringConvertible {
    /// `Connection(127.0.0.1:54321)`, with the peer's address; without one, with the descriptor's number:
    /// `Connection(descriptor 7)`.
    public var description: String { "Connection(\(peerAddress?.description ?? "descriptor \(fd)"))" }
}

extension Connection: ReadinessHandler {
    package func loopWillEnd() {
        guard lifecycle.hasDescriptor else { return }
        recordEnd(.loopEnded)
        noteFailure(SystemError(writeCall, ECANCELED, detail: "the loop has ended"))
        failWrites()
        release()
    }

    package func descriptorIsReady(_ ready: Interest) {
        interest.subtract(ready)
        // Each step may end the connection.
        if ready.contains(.writing) { flush() }
        if ready.contains(.reading) {
            if traits.contains(.reads) { readNow() } else { readDiverted() }
        }
        if !ready.isDisjoint(with: .peerGone) { peerEventArrived(ready) }
        updateInterest()
    }

    // Each message calls it once or twice: a call would cost 14 of 5,000 instructions.
    @inline(__always)
    func updateInterest() {
        if traits.isDiverted { return updateDivertedInterest() }
        var wanted = Interest(rawValue: UInt32(watchedEnds))
        if reader.isWaiting { wanted.insert(.reading) }
        if writer.wantsRoom { wanted.insert(.writing) }
        if wanted.isEmpty { wanted = restingInterest }
        setInterest(wanted)
    }

    @inline(__always)
    func setInterest(_ wanted: Interest) {
        guard wanted != interest, lifecycle.hasDescriptor else { return }
        interest = wanted
        do throws(SystemError) {
            try loop.setInterest(wanted, of: fd, handler: self)
        } catch {
            // The kernel refuses the registration: no event would ever be reported.
            interest = []
            endRead(error)
            fail(error)
        }
    }

    /// The descriptor was ready, and there was neither anything to read nor room to write.
    @inline(never)
    func noteFutileReadiness(_ call: SystemCall) {
        let progress = bytesReceived &+ bytesSent &+ (cold?.discarded ?? 0)
        loop.noteSpuriousReadiness(
            of: fd, progress: progress,
            SystemError(call, EAGAIN, detail: "\(self), which is reported as ready"))
    }
}
