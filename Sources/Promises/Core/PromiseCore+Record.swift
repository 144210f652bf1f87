import Reactor

// Information about a core beyond its state, for reports and descriptions.

extension PromiseCore {
    /// The record of this core, retained for the caller.
    var record: TraceRecord? {
        guard has(.isRecorded) else { return nil }
        // Makes `conf` install its report handler.
        _ = conf
        return TraceRegistry.withLock { Tracing.record(of: self, in: $0) }
    }

    /// May be called on any thread.
    func provenance(type: String? = nil, callSite: CallSite?) -> Provenance {
        TraceRegistry.provenance(record, type: type, callSite: callSite)
    }

    /// Ends an annotated core. Out of line, so that other cores do not pay for it.
    @inline(never)
    func endAnnotated() {
        if has(.isNoted) { leaveUndrivenWork() }
        destroyContents(has(.isRecorded) ? TraceRegistry.remove(at: ref.pointer) : nil)
    }

    /// The part of a description before the value: `"login": `
    var label: String { provenance(callSite: nil).name.map { "\"\($0)\": " } ?? "" }

    /// The part of a debug description after the value: ` "login" (made at App/Login.swift:12 → …)`
    var remarks: String {
        let known = provenance(callSite: nil)
        return (known.name.map { " \"\($0)\"" } ?? "") + (known.trace.map { " (\($0.text(namesLast: false)))" } ?? "")
    }
}
