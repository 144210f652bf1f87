import Glibc
import Reactor

// To be told that the peer has gone while nothing is read. The kernel is asked for EPOLLRDHUP, EPOLLHUP and EPOLLERR alone, so
// that input stays where it is and wakes nothing.

extension Connection {
    /// Fulfilled as soon as the peer has gone, also while nothing is read and while unread input lies before the end.
    ///
    /// ```swift
    /// let query = database.find(key)
    /// connection.peerGone().done { _ in query.cancel() }
    /// ```
    ///
    /// Nothing is read for it: a read gets all input and then the same end or error. Several may wait, and a read besides.
    /// While it waits, the connection is retained and the loop kept alive, as by a read. `close`, `abort` and `detach` fulfill
    /// it with `ECANCELED`. Cancelling it ends the watch.
    ///
    /// A peer that vanishes without a word is found by `SocketOption.keepAlive` or by a write.
    /// - Parameter ignoringHalfClose: whether the peer may end its side and still be there. By default an end counts, since the
    ///   usual client that ends its side has closed its socket; a client that sends its request, ends its side and then reads
    ///   needs `true`. Then this is fulfilled by a reset, or when both sides have ended.
    @inlinable @inline(__always)
    public func peerGone(
        ignoringHalfClose: Bool = false, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<PeerGone> {
        Guarantee(startPeerWatch(ignoringHalfClose).core.traced(root: "peerGone", Guarantee<PeerGone>.self, file, line))
    }

    /// Settles as the promise that `work` returns, unless the peer goes before: then that promise is cancelled, and the
    /// result rejected with the `PeerGone` that says how.
    ///
    /// ```swift
    /// connection.cancelWhenPeerGone { report(for: request) }.then { connection.write($0) }
    /// ```
    ///
    /// As with `timeout`, a promise that has other waiters goes on. If it is known already that the peer has gone, or if the
    /// connection is closed, `work` is not called. A `close`, an `abort` or a `detach` on this side that comes later does not
    /// cancel the work. See `peerGone` for the rest.
    @available(*, noasync, message: "an async function has no loop of its own; use it before you await")
    @inlinable
    public func cancelWhenPeerGone<Work: Thenable>(
        ignoringHalfClose: Bool = false, file: StaticString = #fileID, line: UInt = #line, _ work: () throws -> Work
    ) -> Promise<Work.T> {
        if let gone = knownPeerGone(ignoringHalfClose) { return Promise(error: gone) }
        do {
            let source = try work().asPromise().core
            let ending = PeerWatchEnding(self)
            let child = source.derive(CancelledWithPeer<Work.T>(ending), role: .hasDeadline)
            ending.start(child, ignoringHalfClose)
            return Promise(child.traced("cancelWhenPeerGone", after: source, Promise<Work.T>.self, file, line))
        } catch { return Promise(error: error) }
    }

    /// What is known without asking the kernel.
    @usableFromInline
    func knownPeerGone(_ ignoringHalfClose: Bool) -> PeerGone? {
        loop.assertOwner()
        guard lifecycle.isOpen else { return .failed(SystemError(readCall, EBADF, detail: "the connection is closed")) }
        if let failure { return .failed(failure) }
        return reader.hasEnded && !ignoringHalfClose ? .ended : nil
    }

    @usableFromInline
    func startPeerWatch(_ ignoringHalfClose: Bool) -> Guarantee<PeerGone> {
        if let gone = knownPeerGone(ignoringHalfClose) { return .value(gone) }
        let core = IOPromise(PeerGone.self, self)
        watchPeer(PeerWatch(core: core, cancels: false, ignoringHalfClose: ignoringHalfClose))
        return Guarantee(core)
    }

    fileprivate func watchPeer(_ watch: PeerWatch) {
        makeColdState.peerWatches.append(watch)
        updateWatchedEnds()
        updateInterest()
    }

    private func updateWatchedEnds() {
        var ends: Interest = []
        for watch in cold?.peerWatches ?? [] {
            ends.formUnion(watch.ignoringHalfClose ? [.error, .hangUp] : .peerGone)
        }
        watchedEnds = UInt16(truncatingIfNeeded: ends.rawValue)
    }

    /// A watch was cancelled, or is not needed any more.
    /// - Returns: false if `promise` is none of those that are to be told.
    func withdrawPeerWatch(_ promise: ObjectIdentifier) -> Bool {
        guard let cold, let index = cold.peerWatches.firstIndex(where: { ObjectIdentifier($0.core) == promise }) else {
            return false
        }
        let watch = cold.peerWatches.remove(at: index)
        updateWatchedEnds()
        updateInterest()
        // Last, since the promise is released with it.
        withExtendedLifetime(watch) {}
        return true
    }

    /// The kernel has reported an end, while reads and writes that waited have been served.
    @inline(never)
    func peerEventArrived(_ ready: Interest) {
        // A read or a write may have met the error, and have told it.
        guard lifecycle.isOpen, watchedEnds != 0 else { return }
        if ready.contains(.error) {
            // The kernel reports an error once. What finds it keeps it, for the reads and writes that follow.
            if traits.contains(.socket) {
                let code = socket.takeError()
                if code != 0 { return fail(SystemError(readCall, code)) }
            } else if !ready.contains(.hangUp) {
                // The reader of a pipe has gone; of a FIFO there may be another one later.
                return settlePeerWatches(as: .failed(SystemError(writeCall, EPIPE)))
            }
        }
        if ready.contains(.hangUp) {
            settlePeerWatches(as: failure.map(PeerGone.failed) ?? .ended)
        } else if ready.contains(.readHangUp) {
            settlePeerWatches(as: .ended) { !$0.ignoringHalfClose }
        } else {
            // Such as a message in the queue of errors, of a socket that was adopted.
            noteFutileReadiness(.getSocketOption)
        }
    }

    /// Tells those who wait for the peer's end.
    @inline(never)
    func settlePeerWatches(as gone: PeerGone, where isTold: (PeerWatch) -> Bool = { _ in true }) {
        guard let cold else { return }
        let told = cold.peerWatches.filter(isTold)
        cold.peerWatches.removeAll(where: isTold)
        // All is as it will be before a handler is called.
        updateWatchedEnds()
        for watch in told {
            if !watch.cancels {
                watch.core.fulfill(gone)
            } else if case .failed(let error) = gone, error.code == ECANCELED {
                continue
            } else if watch.core.isWaiting {
                // The work may have settled in time, with its notification still queued. That is not too late.
                watch.core.cancel(with: gone)
            }
        }
    }
}

/// Settles as its source. The operation owns the watch of the peer, and ends it then.
@usableFromInline
struct CancelledWithPeer<T>: Operation {
    @usableFromInline typealias Input = T
    @usableFromInline typealias Output = T
    @usableFromInline let ending: PeerWatchEnding

    @inlinable init(_ ending: PeerWatchEnding) { self.ending = ending }

    @inlinable
    func run(_ source: Source<T>, _ core: PromiseCore) { core.finish(as: source) }
}

/// A watch of the peer that cancels a promise. It ends when the last reference to this object is released.
@usableFromInline
final class PeerWatchEnding {
    private let connection: Connection
    /// The core whose operation owns this object, which therefore outlives it.
    private var core: ObjectIdentifier?

    @usableFromInline
    init(_ connection: Connection) { self.connection = connection }

    /// The connection retains `core`, and the operation of `core` retains this object, until the peer goes or the core
    /// settles.
    @usableFromInline
    func start(_ core: PromiseCore, _ ignoringHalfClose: Bool) {
        self.core = ObjectIdentifier(core)
        connection.watchPeer(.init(core: core, cancels: true, ignoringHalfClose: ignoringHalfClose))
    }

    deinit {
        // Another thread gets here only while the loop ends, which ends the connection itself.
        if let core, connection.loop.isUsableHere { _ = connection.withdrawPeerWatch(core) }
    }
}
