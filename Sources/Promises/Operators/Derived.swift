// Makes the promise of an operator: a core whose operation runs once the source has settled, recorded for traces.
//
// `then` and `done`, the operators in most protocol steps, consume a promise that is rarely used again: if it is
// fulfilled, the handler takes over its reference. For a promise that is kept and still pending this costs one more
// retain and release, so other operators do not consume.

extension Thenable {
    @inlinable @inline(__always)
    func derived<Op: Operation>(
        _ name: StaticString, _ operation: consuming Op, role: CoreRole = [], _ file: StaticString, _ line: UInt
    ) -> Promise<Op.Output> {
        let source = asPromise().core
        let child = source.derive(operation, role: role)
        return Promise(child.traced(name, after: source, Promise<Op.Output>.self, file, line))
    }

    @inlinable @inline(__always)
    consuming func consumed<Op: Operation>(
        by name: StaticString, _ operation: consuming Op, _ file: StaticString, _ line: UInt
    ) -> Promise<Op.Output> {
        let source = CoreRef.retaining(asPromise().core)
        return Promise(makeCore(consuming: source, by: name, operation, Promise<Op.Output>.self, file, line))
    }
}

extension Guarantee {
    @inlinable @inline(__always)
    func derived<Op: Operation>(
        _ name: StaticString, _ operation: consuming Op, role: CoreRole = [], _ file: StaticString, _ line: UInt
    ) -> Guarantee<Op.Output> {
        Guarantee<Op.Output>(
            core.derive(operation, role: role).traced(name, after: core, Guarantee<Op.Output>.self, file, line))
    }

    @inlinable @inline(__always)
    consuming func consumed<Op: Operation>(
        by name: StaticString, _ operation: consuming Op, _ file: StaticString, _ line: UInt
    ) -> Guarantee<Op.Output> {
        let source = CoreRef.retaining(core)
        return Guarantee<Op.Output>(
            makeCore(consuming: source, by: name, operation, Guarantee<Op.Output>.self, file, line))
    }
}

/// Like `derive` on `source`, but consumes a reference to `source`.
@inlinable @inline(__always)
func makeCore<Op: Operation, Kind>(
    consuming source: CoreRef, by name: StaticString, _ operation: consuming Op, _ type: Kind.Type,
    _ file: StaticString, _ line: UInt
) -> PromiseCore {
    let isTraced = Tracing.isWanted
    if isTraced { source.retain() }
    let child = PromiseCore.pending(.of(Op.self))
    child.payload.store(operation)
    attachWaiter(child, consuming: source)
    return isTraced ? child.traced(name, after: source.takeOver(), type, file, line) : child
}
