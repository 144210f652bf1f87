/// Promises made one after another: the common part of `forEach`, `thenReduce` and `repeatWhile`.
///
/// The result's core itself waits for each promise, and runs again when that promise has settled. So a round takes no
/// extra memory and no stack depth, and a cancellation reaches the current round's promise. Each round is a job on the
/// loop, even if its promise has settled, so an endless sequence does not starve other work.
@usableFromInline
struct SequentialOperation<Value>: Operation {
    @usableFromInline typealias Output = Value
    /// Runs one round. Its parameter is the promise that was fulfilled; `nil` in the first round. Returns the next
    /// promise to wait for; `nil` if the round has finished the core.
    @usableFromInline let round: (CoreRef?, PromiseCore) throws -> PromiseCore?

    @inlinable init(_ round: @escaping (CoreRef?, PromiseCore) throws -> PromiseCore?) {
        self.round = round
    }

    @inlinable
    func begin<Kind>(
        _ name: StaticString, as type: Kind.Type, _ file: StaticString, _ line: UInt
    ) -> PromiseCore {
        let core = PromiseCore(state: .pending, loop: .ofThisThread, code: .of(Self.self))
        core.sourceWord.store(.taken)
        core.retain()
        run(after: nil, core.traced(root: name, type, file, line))
        return core
    }

    @inlinable @inline(__always)
    func run(_ source: AnySource, _ core: PromiseCore) {
        guard source.isFulfilled else { return core.finish(rejectedAs: source.reference) }
        run(after: source.reference, core)
    }

    @inlinable
    func run(after source: CoreRef?, _ core: PromiseCore) {
        // A handler above may have turned the cancellation into a value.
        if core.hasBeenCancelled { return core.finish(throwing: PromiseError.asCancellation) }
        do {
            if let next = try round(source, core) { core.wait(for: next, andRun: self) }
        } catch { core.finish(throwing: error) }
    }
}
