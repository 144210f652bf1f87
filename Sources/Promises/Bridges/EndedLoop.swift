import Reactor

extension EventLoop.Remote {
    /// Is fulfilled when the loop has ended, with all that it held: to wait without holding a thread. Any thread.
    ///
    /// ```swift
    /// worker.stop()
    /// hang(worker.ended)
    /// ```
    ///
    /// Work that this thread's loop waits for.
    public var ended: Guarantee<Void> {
        let home = EventLoop.ofThisThread.homeOfJobs
        home.beginOutsideWork()
        return Guarantee { seal in
            whenEnded {
                seal(())
                home.endOutsideWork()
            }
        }
    }
}

extension LoopGroup {
    /// Is fulfilled when all loops have ended: to wait without holding a thread. See `EventLoop.Remote.ended`.
    public var ended: Guarantee<Void> { when(guarantees: map(\.ended)).asVoid() }
}
