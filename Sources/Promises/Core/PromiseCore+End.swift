import Reactor
import ReactorLibc

// The ends of a core: its last reference is released, its producer ends without settling it, or its operation is dropped,
// which releases the user's closure and its captures. A `deinit` there may cancel the next promise, and so on for as long
// as such objects refer to each other. (An operation is dropped, a value destroyed.)

extension PromiseCore {
    /// Destroys the outcome or drops the operation, for the deinit. Reports an unhandled error.
    func destroyContents(_ record: TraceRecord? = nil) {
        let seen = state.load()
        switch seen.kind {
        case .fulfilled:
            if !seen.isFulfilledTrivially { code(self, .destroy) }
        case .rejected:
            let error = payload.takeError()
            if seen.isHandled || has(.isDetached) { return }
            Reports.unhandled(error, TraceRegistry.provenance(record, callSite: payload.callSite))
        case .link:
            // The loop that kept it has ended: there is nothing to destroy.
            if seen == .spare { return }
            dropOperation()
            Self.releaseLinks(seen)
        case .pending:
            assert(seen.waiters == nil, "a promise's producer ended without notifying the waiters")
            dropOperation()
        }
    }

    /// A chain of links can be a million long; a loop releases it, because nested deinits would overflow the stack.
    private static func releaseLinks(_ first: StateWord) {
        var word = first
        while word.isLink {
            var core = word.root.takeOver()
            guard isOnlyReference(&core) else { return }
            word = core.state.load()
            // This thread has the only reference, so it may take the link. The core is released as pending, without
            // waiters.
            if word.isLink { core.state.store(.pending) }
        }
    }

    // MARK: Without a producer

    /// The producer of this core has ended, or is about to: the waiters are notified, each on its own loop. The
    /// producer calls this while it still holds the core.
    package func producerDidEnd(_ error: @autoclosure () -> PromiseError = .noProducer) {
        guard isOpen else { return }
        reject(error(), at: nil)
    }

    // MARK: Without running

    /// Drops the operation, if it has not been taken out, and releases the source, if that has settled.
    func dropOperation() {
        let word = sourceWord.takeOut()
        switch word.mark {
        case .taken, .linkedFrom: return
        case .none, .waiting: dropTakenOperation()
        case .fulfilled, .rejected:
            dropTakenOperation()
            word.release()
        }
    }

    /// Drops what a core has in its payload that waits or was about to run: its operation or, after that has run, its next
    /// step. The caller has taken its right to run.
    @inline(never)
    func dropTakenOperation() {
        if marks.contains(.hasNextStep) { return dropNextStep() }
        // A thread without a loop may be ending: do not make a loop for this.
        guard !role.contains(.isNotifiedOfDrop), let loop = LoopRef.ofThisThreadIfAny else { return code(self, .drop) }
        loop.borrow { loop in
            if loop.jobs.isDiscarding {
                // Inside a `deinit` that another dropped operation runs: do it afterwards, not nested.
                let operation = PromiseCore(operationOf: self)
                operation.sourceWord.store(.taken)
                loop.jobs.discard(.passRetained(InternalJob({}) { operation.code(operation, .drop) }))
            } else {
                loop.jobs.discarding { code(self, .drop) }
            }
        }
    }
}
