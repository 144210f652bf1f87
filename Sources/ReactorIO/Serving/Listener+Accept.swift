import Promises
import Reactor
import ReactorLibc

extension Listener {
    /// Waits for the next connection. Pending calls are served in order, and cancelled ones are skipped.
    ///
    /// ```swift
    /// listener.accept().then { connection in
    ///     connection.write("welcome\n").ensure { connection.close() }
    /// }
    /// ```
    ///
    /// Rejected with a `SystemError` from `accept4`:
    /// - `EBADF` after `close`;
    /// - `ECANCELED` if `close` is called while the promise is pending;
    /// - `EBUSY` while `serve` is running;
    /// - the error that ended the listener.
    @inlinable @inline(__always)
    public func accept(file: StaticString = #fileID, line: UInt = #line) -> Promise<Connection> {
        Promise(startAccept().core.traced(root: "accept", Promise<Connection>.self, file, line))
    }

    @usableFromInline
    func startAccept() -> Promise<Connection> {
        if state.isClosed { return Promise(refused: SystemError(.accept, EBADF, detail: "the listener is closed")) }
        if server != nil { return Promise(refused: SystemError(.accept, EBUSY, detail: "serve is running")) }
        let core = PromiseCore.pending(Connection.self, by: self)
        waiting.append(core, of: core)
        acceptor.updateInterest(for: self)
        return Promise(core)
    }
}
