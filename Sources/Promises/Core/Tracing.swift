import CLinux
import Reactor

// The tracing of operators. When off, it costs one load and a branch that is never taken. The traced path is out of
// line; the check is inlined, where the call site is a constant.

@usableFromInline
enum Tracing {
    @inlinable @inline(__always)
    static var isOn: Bool { clinux_is_tracing() }

    /// True when tracing is on, or this thread may never drive its loop.
    @inlinable @inline(__always)
    static var isWanted: Bool { clinux_records_operators() }

    // `type` is a function, so that the metadata is looked up only when needed.
    @usableFromInline @inline(never)
    static func record(
        _ core: PromiseCore, after source: PromiseCore?, _ operation: StaticString, _ file: StaticString, _ line: UInt,
        _ type: () -> Any.Type
    ) {
        let callSite = CallSite(file, line)
        if isOn { add(core, after: source, operation, callSite, type()) }
        // The handler of a dispatched operator runs elsewhere, and an externally settled promise needs no loop.
        guard core.loop == .ofThisThread, !core.role.contains(.externallySettled) else { return }
        if source == nil && core.settled != nil { return }
        // An operator that is a property does not know its call site, but its source may.
        let known = callSite.isKnown ? callSite : source?.callSite ?? callSite
        if EventLoop.ofCurrentThread.note(core, known) {
            core.annotate(.isNoted)
        }
    }
}

extension PromiseCore {
    @inlinable @inline(__always)
    package func traced<Kind>(
        _ operation: StaticString, after source: PromiseCore, _ type: Kind.Type, _ file: StaticString, _ line: UInt
    ) -> PromiseCore {
        if Tracing.isWanted { Tracing.record(self, after: source, operation, file, line) { type } }
        return self
    }

    /// Records that this core is the first of its chain.
    @inlinable @inline(__always)
    package func traced<Kind>(
        root operation: StaticString = "made", _ type: Kind.Type, _ file: StaticString, _ line: UInt
    ) -> PromiseCore {
        if Tracing.isWanted { Tracing.record(self, after: nil, operation, file, line) { type } }
        return self
    }
}
