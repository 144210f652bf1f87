import Reactor

// A core whose operation has run waits again, so one core serves a sequence of promises, and runs after each.

extension PromiseCore {
    /// Makes this core, whose operation has run, run `operation` after `inner`. Consumes a reference to this core.
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

    /// Makes this core, whose operation has run, run `operation` in a job. Consumes a reference to this core.
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
            // Like a handler attached to a settled promise, it must not overtake earlier outcomes.
            $0.takeMail()
            $0.enqueueOwned(ref.job)
        }
    }

    // MARK: Next steps

    /// Makes this core, whose operation has run, run `next` after `inner`. Consumes a reference to this core.
    func wait(for inner: PromiseCore, then next: @escaping (PromiseCore) -> Void) {
        continueBy(next)
        inner.attach(self)
        release()
    }

    /// Stores the next step of this core in place of its operation; it runs when the core's source has settled.
    func continueBy(_ next: @escaping (PromiseCore) -> Void) {
        payload.store(NextStep(run: next))
        marks.insert(.hasNextStep)
        // Only a core of this thread can be linked to the root, so the root waits for that source too.
        rootRef.borrow { _ = $0.marks.insert(.hasHadNextStep) }
    }

    func runNextStep() {
        marks.remove(.hasNextStep)
        payload.take(NextStep.self).run(self)
    }

    func dropNextStep() {
        marks.remove(.hasNextStep)
        _ = payload.take(NextStep.self)
    }
}

/// The next step of a core, run in place of its operation when its source has settled.
// A struct for the same reason as `Operation`.
private struct NextStep {
    let run: (PromiseCore) -> Void
}
