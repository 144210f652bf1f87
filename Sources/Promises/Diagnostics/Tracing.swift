import CLinux
import Reactor

// What operators do to be traced. Off, that is one load and a branch which is never taken; so what comes after the
// branch is kept out of line, and what comes before it is inlined where the call site is a constant.

@usableFromInline
enum Tracing {
    @inlinable @inline(__always)
    static var isOn: Bool { clinux_is_tracing() }

    /// Whether it is on, or this thread's loop may never be driven.
    @inlinable @inline(__always)
    static var isWanted: Bool { clinux_records_operators() }

    // The type comes as a function, so that its metadata are not asked for where nobody wants them.
    @usableFromInline @inline(never)
    static func record(
        _ core: PromiseCore, after source: PromiseCore?, _ operation: StaticString, _ file: StaticString, _ line: UInt,
        _ type: () -> Any.Type
    ) {
        let origin = CallSite(file, line)
        if isOn { TraceRegistry.add(core, after: source, operation, origin, type()) }
        // What is dispatched has its handler elsewhere, and what is made by hand needs no loop.
        guard core.loop == EventLoop.addressOfThisThread, !(core is DispatchedResult) else { return }
        if source == nil && (core.role.contains(.externallySettled) || core.settled != nil) { return }
        // A property does not know its caller, but perhaps the line that made what it was called on.
        let place = origin.isKnown ? origin : source?.creationSite ?? origin
        if EventLoop.ofCurrentThread.note(core, place) {
            core.annotations.bitwiseOr(PromiseCore.isNoted, ordering: .relaxed)
        }
    }

    @usableFromInline @inline(never)
    static func adopt(_ core: PromiseCore, _ inner: PromiseCore) { TraceRegistry.adopt(core, inner) }
}

extension PromiseCore {
    /// Makes a core that waits for this one.
    @inlinable
    func derive<Op: Operation>(_ operation: consuming Op) -> PromiseCore {
        let child = PromiseCore(operation)
        attach(child)
        return child
    }

    /// The same for a node with a role of its own.
    @inlinable
    func derive<Op: Operation>(_ operation: consuming Op, role: Role) -> PromiseCore {
        let child = PromiseCore(operation, role: role)
        attach(child)
        return child
    }

    /// Records that `operation` made this core out of `source`, as a promise of type `type`.
    @inlinable @inline(__always)
    func traced<Kind>(
        _ operation: StaticString, after source: PromiseCore, _ type: Kind.Type, _ file: StaticString, _ line: UInt
    ) -> PromiseCore {
        if Tracing.isWanted { Tracing.record(self, after: source, operation, file, line) { type } }
        return self
    }

    /// Records that this core is the first of its chain.
    @inlinable @inline(__always)
    func traced<Kind>(
        root operation: StaticString = Trace.Step.making, _ type: Kind.Type, _ file: StaticString, _ line: UInt
    ) -> PromiseCore {
        if Tracing.isWanted { Tracing.record(self, after: nil, operation, file, line) { type } }
        return self
    }
}
