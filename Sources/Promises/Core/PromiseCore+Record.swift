import Reactor
import Synchronization

// The records of a core in `TraceRegistry`. The core has one if its `annotations` say so.

extension PromiseCore {
    private var opaque: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

    private var isRecorded: Bool { annotations.load(ordering: .relaxed) & PromiseCore.isRecorded != 0 }

    private func knownRecord(in table: TraceRegistry.Table) -> TraceRecord? {
        isRecorded ? table.record(at: opaque) : nil
    }

    /// The record of this core, which the caller retains.
    var record: TraceRecord? {
        guard isRecorded else { return nil }
        // Makes `conf` install its handler; otherwise the report would find none that understands a record.
        _ = conf
        return TraceRegistry.withLock { knownRecord(in: $0) }
    }

    /// Records how this core was made. `source` is the promise on which the operator was called, if an operator made
    /// it.
    func record(after source: PromiseCore?, _ operation: StaticString, _ origin: CallSite, _ type: Any.Type) {
        // The core that all fulfilled promises of Void share has no creation site.
        if self === PromiseCore.void { return }
        let loop = EventLoop.ofCurrentThread.serial
        TraceRegistry.withLock { table in
            var parent: TraceRecord?
            if let source {
                parent = source.knownRecord(in: table)
                if parent == nil, let place = source.creationSite {
                    // The source was made before tracing was turned on.
                    let made = (StaticText(Trace.Step.making), place)
                    parent = TraceRecord(made, after: nil, type: nil, loop: loop, ordinal: 0)
                }
            }
            insertRecord((StaticText(operation), origin), after: parent, type, loop, in: &table)
        }
    }

    /// Names this promise.
    func setName(_ name: String, _ type: Any.Type) {
        if self === PromiseCore.void { return }
        let isHere = loop == EventLoop.addressOfThisThread
        let loop = isHere ? EventLoop.ofCurrentThread.serial : 0
        TraceRegistry.withLock { table in
            let made = creationSite.map { (operation: StaticText(Trace.Step.making), origin: $0) }
            let record = knownRecord(in: table) ?? insertRecord(made, after: nil, type, loop, in: &table)
            record.name = name
        }
    }

    /// Records that this core now waits for `inner`, which its handler has returned.
    func recordAdoption(of inner: PromiseCore) {
        let root = root
        TraceRegistry.withLock { table in
            guard
                let adopter = root.knownRecord(in: table), let adopted = inner.knownRecord(in: table),
                adopted.isPending, adopter !== adopted
            else { return }
            adopter.awaited = adopted
        }
    }

    @discardableResult
    private func insertRecord(
        _ step: (operation: StaticText, origin: CallSite)?, after parent: TraceRecord?, _ type: Any.Type, _ loop: Int,
        in table: inout TraceRegistry.Table
    ) -> TraceRecord {
        let core = TracedCore(address: opaque, progress: PromiseCore.progress(at:))
        let record = table.insert(core, step, after: parent, type, loop)
        annotations.bitwiseOr(PromiseCore.isRecorded, ordering: .relaxed)
        return record
    }

    private static func progress(at address: UnsafeMutableRawPointer) -> TracedCore.Progress {
        // The core is alive: its `deinit` would need the lock, which the caller holds.
        let seen = Unmanaged<PromiseCore>.fromOpaque(address)._withUnsafeGuaranteedRef {
            $0.state.load(ordering: .acquiring)
        }
        switch seen & State.kindMask {
        case State.link: return .linked(to: UnsafeMutableRawPointer(bitPattern: seen & State.pointerMask)!)
        case State.pending: return .pending
        default: return .settled
        }
    }

    /// The known facts about this promise. May be called on any thread.
    func provenance(type: String? = nil, origin: CallSite?) -> Provenance {
        guard isRecorded else { return Provenance(type: type, origin: origin) }
        return TraceRegistry.withLock { table in
            let record = knownRecord(in: table)
            return Provenance(
                name: record?.name, type: type ?? record?.typeName, origin: origin, trace: record?.trace())
        }
    }

    /// Ends a core that has a record, or whose call site has been noted. Out of line, so that all other cores do not
    /// pay for it.
    @inline(never)
    func endAnnotated() {
        if annotations.load(ordering: .relaxed) & PromiseCore.isNoted != 0 { leaveUndrivenWork() }
        end(isRecorded ? TraceRegistry.remove(at: opaque) : nil)
    }

    /// The part of a description before the value: `"login": `
    var label: String { provenance(origin: nil).name.map { "\"\($0)\": " } ?? "" }

    /// The part of a debug description after the value: ` "login" (made at App/Login.swift:12 → …)`
    var remarks: String {
        let known = provenance(origin: nil)
        return (known.name.map { " \"\($0)\"" } ?? "") + (known.trace.map { " (\($0.text(namesLast: false)))" } ?? "")
    }
}
