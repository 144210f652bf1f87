import Reactor

// A core whose operation has run waits again: a sequence of promises is one core, which runs after each of them.

extension PromiseCore {
    /// Makes this core, whose operation has run, run another one after `inner`. Consumes a reference to this core.
    @inlinable
    package func wait<Op: Operation & ~Copyable>(for inner: PromiseCore, andRun operation: consuming Op) {
        guard prepareToWait(for: inner) else { return release() }
        payload.store(operation)
        inner.attach(self)
        release()
    }

    @usableFromInline
    func prepareToWait(for inner: PromiseCore) -> Bool {
        guard isOpen else {
            // Cancelled while its operation ran, so the promise that the operation returned is no longer needed.
            inner.cancelUnlessWanted()
            return false
        }
        if inner.ref == rootRef {
            reject(PromiseError.returnedSelf, at: nil)
            return false
        }
        if Tracing.isOn { Tracing.adopt(self, inner) }
        return true
    }

    /// Makes this core, whose operation has run, run another one in a job. Consumes a reference to this core.
    @inlinable
    package func enqueueAgain<Op: Operation & ~Copyable>(_ operation: consuming Op) {
        guard isOpen else { return release() }
        payload.store(operation)
        enqueueAgain()
    }

    /// Queues this core of this thread's loop, with a stored operation and an empty source. Consumes a reference to
    /// this core.
    @usableFromInline
    package func enqueueAgain() {
        sourceWord.store(.settled(PromiseCore.voidRef.retain().address, as: .fulfilled(isTrivial: true)))
        marks.insert(.countsAsWaiting)
        LoopRef.ofThisThread.borrow {
            $0.handlerDidAttach()
            // As for a handler attached to a settled promise.
            $0.takeMail()
            $0.enqueueOwned(ref.job)
        }
    }
}
