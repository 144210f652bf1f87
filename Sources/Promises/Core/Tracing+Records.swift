import Reactor

// The records of cores in `TraceRegistry`. A core has a record if its `annotations` say so.

extension Tracing {
    static func record(of core: PromiseCore, in table: TraceRegistry.TracedPromises) -> TraceRecord? {
        core.has(.isRecorded) ? table.record(at: core.ref.pointer) : nil
    }

    static func add(
        _ core: PromiseCore, after source: PromiseCore?, _ operation: StaticString, _ callSite: CallSite,
        _ type: Any.Type
    ) {
        // The core that all fulfilled promises of Void share has no call site.
        if core === PromiseCore.void { return }
        let loop = EventLoop.ofCurrentThread.serial
        TraceRegistry.withLock { table in
            var parent: TraceRecord?
            if let source {
                parent = record(of: source, in: table)
                if parent == nil, let callSite = source.callSite {
                    // The source was made before tracing was turned on.
                    let made = (StaticText(Trace.Step.making), callSite)
                    parent = TraceRecord(made, after: nil, type: nil, loop: loop, ordinal: 0)
                }
            }
            insert(core, (StaticText(operation), callSite), after: parent, type, loop, in: &table)
        }
    }

    /// Names a promise.
    static func setName(_ name: String, of core: PromiseCore, _ type: Any.Type) {
        if core === PromiseCore.void { return }
        let loop = core.loop == .ofThisThread ? EventLoop.ofCurrentThread.serial : 0
        TraceRegistry.withLock { table in
            let made = core.callSite.map { (operation: StaticText(Trace.Step.making), callSite: $0) }
            let record = record(of: core, in: table) ?? insert(core, made, after: nil, type, loop, in: &table)
            record.name = name
        }
    }

    @usableFromInline @inline(never)
    static func adopt(_ core: PromiseCore, _ inner: PromiseCore) {
        let root = core.root
        TraceRegistry.withLock { table in
            var roots = Roots()
            guard
                let adopter = record(of: root, in: table), let adopted = record(of: inner, in: table),
                adopted.isPending(&roots), adopter !== adopted
            else { return }
            adopter.awaited = adopted
        }
    }

    @discardableResult
    private static func insert(
        _ core: PromiseCore, _ step: (operation: StaticText, callSite: CallSite)?, after parent: TraceRecord?,
        _ type: Any.Type, _ loop: Int, in table: inout TraceRegistry.TracedPromises
    ) -> TraceRecord {
        let traced = TracedCore(address: core.ref.pointer, progress: progressOfCore(at:))
        let record = table.insert(traced, step, after: parent, type, loop)
        core.annotate(.isRecorded)
        return record
    }

    private static func progressOfCore(at address: UnsafeMutableRawPointer) -> TracedCore.TracedProgress {
        // The core is alive: its `deinit` would need the lock, which the caller holds.
        let seen = CoreRef(at: address).borrow { $0.state.load() }
        switch seen.kind {
        case .link: return .linked(to: seen.root.pointer)
        case .pending: return .pending
        case .fulfilled, .rejected: return .settled
        }
    }
}
