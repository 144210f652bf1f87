import Reactor

extension LoopRemote {
    /// A guarantee that is fulfilled when the loop has ended and released everything it held. Blocks no thread.
    ///
    /// ```swift
    /// worker.stop()
    /// hang(worker.ended)
    /// ```
    ///
    /// May be read on any thread. It does not keep this thread's loop alive: call `hang` on it, or take a `hold()`.
    /// Each read makes a guarantee, which is kept until the loop ends or the guarantee is cancelled, for example by
    /// losing a race.
    public var ended: Guarantee<Void> { Guarantee(promiseOfEnd(of: CollectionOfOne(self))) }
}

extension LoopGroup {
    /// A guarantee that is fulfilled when all loops have ended. Blocks no thread.
    ///
    /// May be read on any thread and in async functions; see `LoopRemote.ended`. The last loop to end settles it. No
    /// handler is attached on the calling thread, whose loop may never be driven.
    public var ended: Guarantee<Void> { Guarantee(promiseOfEnd(of: self)) }
}

private func promiseOfEnd(of loops: some Collection<LoopRemote>) -> PromiseCore {
    let end = ExternalCore(Void.self)
    let left = LockedValue(loops.count)
    let home = EventLoop.ofCurrentThread.remote
    home.beginDispatchedJob()
    let watches = loops.map { loop in
        let id = loop.whenEnded {
            let isLast = left.withLock { left in
                left -= 1
                return left == 0
            }
            guard isLast, end.claim() else { return }
            end.fulfill(())
            home.endDispatchedJob()
        }
        return (loop, id)
    }
    end.onCancel = { end, error in
        end.rejectCancelled(with: error, at: nil)
        for (loop, id) in watches { loop.forgetWhenEnded(id) }
        home.endDispatchedJob()
    }
    return end.traced(root: "ended", Guarantee<Void>.self, #fileID, #line)
}
