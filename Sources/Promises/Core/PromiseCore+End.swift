import Reactor
import ReactorLibc

// A core ends when its last reference is released. Its producer may end before, without settling it, or its operation is
// dropped, which releases the user's closure and its captures. A `deinit` of a capture may cancel another promise, and so on
// along a chain of such objects. (Operations are dropped, values destroyed.)

extension PromiseCore {
    /// Destroys the outcome or drops the operation, and reports an unhandled error. For the deinit.
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
            // The loop that kept this spare core has ended; nothing is left to destroy.
            if seen == .spare { return }
            dropOperation()
            Self.releaseLinks(seen)
        case .pending:
            assert(seen.waiters == nil, "a promise's producer ended without notifying the waiters")
            dropOperation()
        }
    }

    /// Releases a chain of links iteratively: it can be a million long, and nested deinits would overflow the stack.
    private static func releaseLinks(_ first: StateWord) {
        var word = first
        while word.isLink {
            var core = word.root.takeOver()
            guard isOnlyReference(&core) else { return }
            word = core.state.load()
            // This thread has the only reference, so it may take the link. What is released is a pending core without
            // waiters.
            if word.isLink { core.state.store(.pending) }
        }
    }

    // MARK: Without a producer

    /// Rejects this core, if open, because its producer has ended or is about to. The producer calls this while it
    /// still holds the core.
    package func producerDidEnd(_ error: @autoclosure () -> PromiseError = .noProducer) {
        guard isOpen else { return }
        reject(error(), at: nil)
    }

    // MARK: Without running

    /// Drops the operation, if not taken out, and releases the source, if settled.
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

    /// Drops the operation or the next step in the payload of a core that waits or was about to run. The caller has
    /// taken the right to run it.
    @inline(never)
    func dropTakenOperation() {
        if marks.contains(.hasNextStep) { return dropNextStep() }
        // A thread without a loop may be ending, so no loop is made.
        guard !role.contains(.isNotifiedOfDrop), let loop = LoopRef.ofThisThreadIfAny else { return code(self, .drop) }
        loop.borrow { loop in
            if loop.jobs.isDiscarding {
                // This runs in a `deinit` that another drop has caused; drop afterwards, not nested.
                let operation = PromiseCore(operationOf: self)
                operation.sourceWord.store(.taken)
                loop.jobs.discard(.passRetained(InternalJob({}) { operation.code(operation, .drop) }))
            } else {
                loop.jobs.discarding { code(self, .drop) }
            }
        }
    }
}
