import Reactor
import Synchronization

/// An externally settled promise, with its call site. Any thread may read that at any time.
@usableFromInline
final class ResolverCore: PromiseCore, @unchecked Sendable {
    private let madeAt: CallSite
    /// Set if the promise was cancelled, as opposed to rejected with a cancellation error. Before the promise settles,
    /// only the party that has claimed it accesses this.
    @exclusivity(unchecked) final var isCancelled = false

    override func cancelProducer() -> Bool {
        guard claim() else { return false }
        isCancelled = true
        return true
    }

    @usableFromInline override var callSite: CallSite? { madeAt }

    @usableFromInline
    init(_ callSite: CallSite, code: @escaping (PromiseCore, Phase) -> Void) {
        madeAt = callSite
        super.init(state: .pending, loop: .ofThisThread, role: .externallySettled, code: code)
    }

    @inlinable @inline(__always)
    convenience init<Value>(root type: Value.Type, _ file: StaticString, _ line: UInt) {
        self.init(CallSite(file, line)) { PromiseCore.perform(Follow<Value>.self, $0, $1) }
    }
}

/// Calls the body if the promise was cancelled; see `Resolver.onCancel`.
struct OnCancel: Operation {
    typealias Input = Never
    typealias Output = Void
    let body: () -> Void

    func run(_ source: AnySource, _ core: PromiseCore) {
        if (source.core as? ResolverCore)?.isCancelled == true { body() }
        core.finish(())
    }
}
