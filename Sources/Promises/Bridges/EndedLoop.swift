import Reactor

extension EventLoop.Remote {
    /// Is fulfilled when the loop has ended, with all that it held: to wait without holding a thread. Any thread.
    ///
    /// ```swift
    /// worker.stop()
    /// hang(worker.ended)
    /// ```
    ///
    /// It does not keep this thread's loop alive: `hang` on it, or take a `hold()`. Ask once, since each answer is kept until the
    /// loop has ended.
    public var ended: Guarantee<Void> {
        let home = EventLoop.ofThisThread.remote
        home.beginDispatchedJob()
        return Guarantee { seal in
            whenEnded {
                seal(())
                home.endDispatchedJob()
            }
        }
    }
}

extension LoopGroup {
    /// Is fulfilled when all loops have ended: to wait without holding a thread. See `EventLoop.Remote.ended`.
    public var ended: Guarantee<Void> { when(guarantees: map(\.ended)).asVoid() }
}
