// How an operator makes its promise: a core whose operation runs once the source has settled, recorded for traces.

extension Thenable {
    @inlinable @inline(__always)
    func derived<Op: Operation>(
        _ name: StaticString, _ operation: consuming Op, _ file: StaticString, _ line: UInt
    ) -> Promise<Op.Output> {
        let source = asPromise().core
        return Promise(source.derive(operation).traced(name, after: source, Promise<Op.Output>.self, file, line))
    }

    @inlinable @inline(__always)
    func derived<Op: Operation>(
        _ name: StaticString, _ operation: consuming Op, role: CoreRole, _ file: StaticString, _ line: UInt
    ) -> Promise<Op.Output> {
        let source = asPromise().core
        let child = source.derive(operation, role: role)
        return Promise(child.traced(name, after: source, Promise<Op.Output>.self, file, line))
    }
}

extension Guarantee {
    @inlinable @inline(__always)
    func derived<Op: Operation>(
        _ name: StaticString, _ operation: consuming Op, _ file: StaticString, _ line: UInt
    ) -> Guarantee<Op.Output> {
        Guarantee<Op.Output>(
            core.derive(operation).traced(name, after: core, Guarantee<Op.Output>.self, file, line))
    }

    @inlinable @inline(__always)
    func derived<Op: Operation>(
        _ name: StaticString, _ operation: consuming Op, role: CoreRole, _ file: StaticString, _ line: UInt
    ) -> Guarantee<Op.Output> {
        Guarantee<Op.Output>(
            core.derive(operation, role: role).traced(name, after: core, Guarantee<Op.Output>.self, file, line))
    }
}
