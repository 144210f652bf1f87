import Reactor
import ReactorLibc

/// A stream of bytes on this thread's loop: a TCP connection, made by `connect(to:)` or by a `Listener`, one end of a
/// `pair()` or a `pipe()`, or another descriptor, adopted by `init(adopting:)`.
///
/// ```swift
/// connection.read().then { outcome -> Promise<Void> in
///     guard case .bytes(let bytes) = outcome else { return .value }
///     return connection.write(bytes)
/// }.ensure { connection.close() }
/// ```
///
/// Reading and writing are independent. The connection reads only on demand, so not reading pauses the peer: the
/// kernel's buffers fill, and the peer must wait. An idle connection holds no buffer. A pending operation keeps the
/// connection alive. Without one, releasing the last reference closes it.
///
/// Three calls end it:
/// - `shutdownWrite()` ends the write side and leaves the read side open (half-close);
/// - `close()` delivers the queued writes and then ends;
/// - `abort()` drops everything and resets.
public final class Connection {
    // Each part owns its state and returns the next action: `reader` has the waiting promise and the end of the input;
    // `writer`, the bytes to send; `lifecycle`, the state of the descriptor; `interest`, the poller's registration;
    // `cold`, everything that few connections need. The methods make the system calls and settle the promises. Whenever
    // user code can run:
    // - `fd` is this connection's as long as `lifecycle.hasDescriptor`;
    // - each change of the reader, the writer or a watch is followed by `updateInterest`, or by the end of the event,
    //   which updates the interest. The poller or a `FlushJob` keeps waiting operations alive;
    // - `path` is `.filtered` while there are a filter and a descriptor, until a close makes it `.discarding`;
    // - a failure of the descriptor is in `failure` and in `lifecycle`, a failure of a filter only in `failure`, since
    //   the filter's queue is still sent.
    //
    // The fields that every message uses come first, in two cache lines: at a thousand connections the memory that a
    // message reads costs more than the instructions. Their order leaves no gap, so that a connection takes 128 bytes
    // of the heap.
    //
    // `@exclusivity(unchecked)` is sound: one thread uses these fields, and none is being changed during a call that
    // could call back. Checks would cost nine runtime calls per message.
    let loop: EventLoop
    let fd: CInt
    let kind: DescriptorKind
    /// True when `ColdState.lastActivity` is updated for an idle time-out, or received bytes are counted for
    /// `readRate`.
    @exclusivity(unchecked) var notesActivity = false
    @exclusivity(unchecked) var interest = ConnectionInterest()
    @exclusivity(unchecked) var path = ConnectionPath.direct
    @exclusivity(unchecked) var lifecycle = ConnectionLifecycle.open
    /// The number of pending promises of `deferDrain` and of the bodies of `forEachFrame`.
    @exclusivity(unchecked) var pendingAnswers: Int32 = 0
    @exclusivity(unchecked) var reader = ConnectionReader()
    @exclusivity(unchecked) var writer = ConnectionWriter()
    /// The number of bytes read from the kernel so far, including those that a filter consumes or `close` discards.
    @exclusivity(unchecked) public internal(set) var bytesReceived = 0
    /// The number of bytes that the kernel has taken so far, after a filter.
    @exclusivity(unchecked) public internal(set) var bytesSent = 0
    @exclusivity(unchecked) var cold: ColdState?

    /// The peer's address; `nil` if the kernel no longer had it, or if peers have no addresses.
    public let peerAddress: SocketAddress?

    init(_ fd: CInt, _ kind: DescriptorKind, peer: SocketAddress?, on loop: EventLoop) {
        (self.loop, self.fd, self.kind) = (loop, fd, kind)
        peerAddress = peer
        if kind.contains(.tcp) { socket.setNoDelay() }
    }

    convenience init(_ socket: Socket, peer: SocketAddress?, isUnix: Bool, on loop: EventLoop) {
        self.init(socket.fd, isUnix ? .localSocket : [.localSocket, .tcp], peer: peer, on: loop)
    }

    // No operation is pending any more; see `ConnectionInterest`.
    deinit {
        guard lifecycle.hasDescriptor else { return }
        if loop.isOwnedByThisThread { return release() }
        loop.performCleanup { [loop, fd, cold] in
            if !loop.hasEnded { cold?.endTimersAndPause(on: loop) }
            loop.closeDescriptor(fd)
            cold?.descriptorWasClosed(loop.hasEnded ? .loopEnded : .closed)
        }
    }

    var ensuredColdState: ColdState {
        if let cold { return cold }
        let made = ColdState()
        cold = made
        return made
    }

    var ensuredRareState: RareState { ensuredColdState.ensuredRareState }

    /// This side's address; `nil` if this kind of connection has none, or if first read after the connection's end. The
    /// first use costs a system call.
    public var localAddress: SocketAddress? {
        if let known = cold?.rare?.localAddress { return known }
        guard lifecycle.hasDescriptor, kind.contains(.socket), let address = socket.localAddress else { return nil }
        ensuredRareState.localAddress = address
        return address
    }

    /// True when bytes have arrived that no read has requested. With a filter, bytes in the kernel do not count, since
    /// they may not come from the peer's program.
    package var hasInputAlready: Bool {
        hasInput || cold?.filter == nil && kind.contains(.socket) && socket.unreadBytes > 0
    }

    /// True when `close` or `abort` has been called, or the descriptor has been released: by `detach`, at a limit, at
    /// the end of the loop. (Not by the `shutdownWrite` of a pipe.)
    public var isClosed: Bool { lifecycle.isClosed }

    // MARK: Failing

    var failure: SystemError? { cold?.rare?.failure?.error }
    var reportedFailure: (any Error)? { cold?.rare?.failure?.reported }

    func reported(_ error: SystemError) -> any Error {
        if let failure = cold?.rare?.failure, error == failure.error { failure.reported } else { error }
    }

    /// The error if the library ended the connection for taking too much memory; otherwise `nil`. Later reads report
    /// it.
    package var ownEnd: SystemError? {
        guard isClosed, let failure, failure.code == ENOBUFS else { return nil }
        return failure
    }

    func refusalInHandshake(_ call: SystemCall) -> SystemError? {
        guard cold?.filter?.isInHandshake == true else { return nil }
        return SystemError(call, EBUSY, detail: "the handshake of the filter has not finished")
    }

    /// Keeps an earlier error, such as a filter's, whose output was being sent.
    func noteFailure(_ error: SystemError) {
        if failure == nil { ensuredRareState.failure = ConnectionFailure(error: error) }
        lifecycle.fail()
    }

    /// Fails the descriptor for writing. Earlier data from the peer may still be read.
    /// - Parameter losesOutput: true if written bytes that have left the queue are lost.
    func fail(_ error: SystemError, losesOutput: Bool = false) {
        noteFailure(error)
        let filter = path == .filtered && error.call == writeCall ? cold?.filter : nil
        let hasNews = filter?.readLastWords() == true
        failWrites(losesOutput: losesOutput)
        if lifecycle.isOpenOrFailed { updateInterest() } else { release() }
        if hasNews { filter?.proceed() }
    }

    /// Closes the descriptor, or gives it away. Afterwards its number may belong to another descriptor.
    func release(as end: ConnectionLifecycle = .closed, givingAway isGivenAway: Bool = false) {
        // An inline handler of an operation that has just failed or was cancelled may have released it.
        guard lifecycle.release(as: end) else { return }
        interest.registered = []
        cold?.endTimersAndPause(on: loop)
        if isGivenAway { loop.forget(fd) }
        cancelRead(isGivenAway ? "the connection was detached" : "the connection was closed")
        if !isGivenAway { loop.closeDescriptor(fd) }
        cold?.input = InputBuffer()
        cold?.descriptorWasClosed(loop.hasEnded ? .loopEnded : .closed)
    }
}

enum ConnectionPath: UInt8 {
    case direct
    case filtered
    case discarding
}

extension Connection: CustomStringConvertible {
    /// `Connection(127.0.0.1:54321)`, with the peer's address, or `Connection(descriptor 7)` without one.
    public var description: String { "Connection(\(peerAddress?.description ?? "descriptor \(fd)"))" }
}
