import Reactor

/// The outcome of a dispatched operation.
@usableFromInline
enum DispatchedOutcome<Value> {
    case value(Value)
    case error(any Error)
    /// The outcome of the source.
    case ofSource
    /// The future outcome of this promise, which the handler has returned.
    case following(PromiseCore)
}

/// How the result receives the outcome. An outcome that arrives after the result has settled or been cancelled is
/// released.
extension DispatchedNode {
    @inlinable
    static func perform<Op: DispatchedOperation>(_ type: Op.Type, _ core: PromiseCore, _ phase: Phase) {
        guard phase == .run else {
            _ = core.take(Op.self)
            return
        }
        let node = unsafeDowncast(core, to: DispatchedNode.self)
        let outcome: DispatchedOutcome<Op.Output>
        // The closure is released before the result settles and another thread continues.
        do {
            let operation = core.take(Op.self)
            outcome = operation.run(node.source(of: Op.Input.self))
        }
        switch outcome {
        case .value(let value): node.complete(value)
        case .error(let error): node.complete(throwing: error)
        case .ofSource: node.completeAsSource(as: Op.Output.self)
        case .following(let core): node.complete(following: core, as: Op.Output.self)
        }
    }

    /// The source as the operation sees it, once the operation has been taken out.
    @inlinable
    func source<Value>(of type: Value.Type) -> Source<Value> {
        Source(inputCore, isFulfilled: isInputFulfilled)
    }

    /// The input of the operation: its source, or the cancellation that took the place of the source's outcome.
    @usableFromInline
    var inputCore: Unmanaged<PromiseCore> { Self.core(ofWord: sourceWord) }

    @usableFromInline
    var isInputFulfilled: Bool { sourceWord & State.kindMask == State.fulfilled }

    /// The core whose outcome an operation passes on unchanged: `inputCore`, or a cancellation that came after the
    /// source's outcome.
    @usableFromInline
    var outcomePassedOn: Unmanaged<PromiseCore> { Self.core(ofWord: takenWord) }

    @usableFromInline
    var passesValueOn: Bool { takenWord & State.kindMask == State.fulfilled }

    private var sourceWord: UInt {
        guard takenWord & Upstream.mark == Upstream.cancelled,
            let late = PromiseCore.core(takenWord) as? LateCancellation
        else {
            return takenWord
        }
        return late.sourceWord
    }

    private static func core(ofWord word: UInt) -> Unmanaged<PromiseCore> {
        .fromOpaque(UnsafeRawPointer(bitPattern: word & State.pointerMask)!)
    }

    /// Whether the outcome of the operation counts. If it does, the caller must settle the result now.
    @usableFromInline
    func claimResult() -> Bool { takenWord & Upstream.mark == Upstream.cancelled || result.claim() }

    @inlinable
    func complete<Value>(_ value: consuming Value) {
        releaseSource()
        guard claimResult() else { return }
        result.store(value)
        result.end(State.fulfilled | PromiseCore.flags(Value.self))
    }

    @usableFromInline
    func complete(throwing error: any Error) {
        releaseSource()
        if claimResult() { result.end(rejectedWith: error) }
    }

    /// Passes the outcome of the source on; an error keeps its origin.
    @inlinable
    func completeAsSource<Value>(as type: Value.Type) {
        if passesValueOn { complete(source(of: Value.self).value) } else { complete(rejectedAs: outcomePassedOn) }
    }

    @usableFromInline
    func complete(rejectedAs source: Unmanaged<PromiseCore>) {
        guard claimResult() else { return }
        source._withUnsafeGuaranteedRef { result.storeError($0.error, $0.origin) }
        result.end(State.rejected)
    }

    @inlinable
    func complete<Value>(following inner: PromiseCore, as type: Value.Type) {
        guard let (root, kind) = inner.settled else {
            return wait(for: inner) { DispatchedNode.perform(DispatchedFollow<Value>.self, $0, $1) }
        }
        if kind == State.fulfilled { return complete(root._withUnsafeGuaranteedRef { $0.value(as: Value.self) }) }
        inner.markHandled()
        complete(rejectedAs: root)
    }

    @usableFromInline
    func wait(for inner: PromiseCore, by code: @escaping (PromiseCore, Phase) -> Void) {
        releaseSource()
        if Tracing.isOn { Tracing.adopt(result, inner) }
        guard result.isOpen else {
            // Cancelled while the handler ran: the promise that it returned is no longer needed.
            return inner.cancelIfUnobserved()
        }
        if inner.root === result { return complete(throwing: result.errorOfWaitingForItself) }
        let next = DispatchedNode(following: inner, after: self, code: code)
        inner.attach(next)
        guard !result.replaceNode(by: next) else { return }
        // `next` has settled the result already, or the result has been cancelled meanwhile.
        next.stop(for: nil).source?.cancelIfUnobserved()
    }
}

/// Settles the result as the promise that the handler has returned.
@usableFromInline
struct DispatchedFollow<Value>: DispatchedOperation {
    @usableFromInline typealias Input = Value
    @usableFromInline typealias Output = Value
    @usableFromInline var interest: DispatchedNode.Interest { .anything }

    @inlinable init() {}

    @inlinable
    func run(_ source: Source<Value>) -> DispatchedOutcome<Value> { .ofSource }
}

extension PromiseCore {
    /// Makes a promise of type `type`, by applying `operation` to this one. `name` is the name of the operator.
    @inlinable
    func derive<Op: DispatchedOperation, Kind>(
        _ operation: consuming Op, on dispatcher: (any Dispatcher)?, fails failure: DispatchedResult.Failure = .byError,
        role: Role = [], _ name: StaticString, _ type: Kind.Type, _ file: StaticString, _ line: UInt
    ) -> PromiseCore {
        let result = DispatchedResult(root: Op.Output.self, fails: failure, file, line)
        let node = DispatchedNode(result, after: self, on: dispatcher, operation.interest, role: role) {
            DispatchedNode.perform(Op.self, $0, $1)
        }
        node.store(operation)
        // Before the operation may run: the promise that its handler returns is recorded with the result.
        _ = result.traced(name, after: self, type, file, line)
        attach(node)
        result.setFirstNode(node)
        return result
    }
}
