import Promises
import Reactor

// Watches register only EPOLLRDHUP, EPOLLHUP and EPOLLERR, so that input stays in the kernel and wakes no loop.

extension Connection {
    /// Waits until the peer has gone, even if no read is pending or unread input precedes the end.
    ///
    /// ```swift
    /// let query = database.find(key)
    /// connection.peerGone().done { _ in query.cancel() }
    /// ```
    ///
    /// The watch reads nothing: later reads return all input, and then the end or the error. Several watches and one
    /// read may be pending at a time. A pending watch retains the connection and keeps the loop alive, like a read.
    /// `close`, `abort`, `detach` and the end of the event loop cancel the guarantee, so that its handlers are not
    /// called. On a closed connection it is cancelled from the beginning. Cancelling the guarantee ends the watch.
    ///
    /// Only `SocketOption.keepAlive` or a write detects that the peer's machine has crashed or lost the network.
    /// - Parameter ignoringHalfClose: true to ignore the end of the peer's side alone, for clients that end their side
    ///   after the request and then read the answer. Only a reset, or the end of both sides, then fulfills the
    ///   guarantee. By default a half-close counts, since most clients end their side by closing their socket.
    /// - Returns: a guarantee of how the peer has gone.
    @inlinable @inline(__always)
    public func peerGone(
        ignoringHalfClose: Bool = false, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<PeerGone> {
        let gone = PeerWatching.start(ignoringHalfClose, of: self)
        return Guarantee(gone.core.traced(root: "peerGone", Guarantee<PeerGone>.self, file, line))
    }

    /// Settles like the promise of `work`. If the peer goes first, cancels that promise, and is rejected with the
    /// `PeerGone`.
    ///
    /// ```swift
    /// connection.cancelWhenPeerGone { report(for: request) }.then { connection.write($0) }
    /// ```
    ///
    /// As with `timeout`, the promise of `work` is not cancelled if it has other waiters. `work` is not called if the
    /// peer is known to have gone, or if the connection is closed. A later `close`, `abort` or `detach` on this side
    /// does not cancel the work.
    /// - Parameters:
    ///   - ignoringHalfClose: true to ignore the end of the peer's side alone; see `peerGone`.
    ///   - work: called at most once, inside this call.
    /// - Returns: a promise of the work's value. Rejected with the error of `work` or of its promise, with `PeerGone`,
    ///   or with a `SystemError` with `EBADF` if this side has already closed the connection.
    @available(*, noasync, message: "an async function has no loop of its own; use it before you await")
    @inlinable
    public func cancelWhenPeerGone<Work: Thenable>(
        ignoringHalfClose: Bool = false, file: StaticString = #fileID, line: UInt = #line, _ work: () throws -> Work
    ) -> Promise<Work.T> {
        do {
            if let gone = try PeerWatching.known(ignoringHalfClose, of: self) { throw gone }
            let source = try work().asPromise().core
            let ending = PeerWatchEnding(self)
            let child = source.derive(SettleAsSource<Work.T>(retaining: ending), role: .hasDeadline)
            ending.start(child, ignoringHalfClose)
            return Promise(child.traced("cancelWhenPeerGone", after: source, Promise<Work.T>.self, file, line))
        } catch { return Promise(refused: error) }
    }
}
