import Reactor
import Synchronization

/// An externally settled promise, with its call site. Any thread may read that at any time.
@usableFromInline
final class ResolverCore: PromiseCore, @unchecked Sendable {
    private let madeAt: CallSite
    /// Set if the promise was cancelled, as opposed to rejected with a cancellation error. Before the promise settles,
    /// only the party that has claimed it accesses this.
    @exclusivity(unchecked) final var isCancelled = false

    override var mayWaitForCleanUps: Bool {
        LockedWaiters(of: self)?.contains(where: WatchingCore.isCleanUp) ?? false
    }

    override func cancelExternally(with error: (any Error)?) -> Stopping {
        // Claimed while the list is locked: no clean-up comes in between.
        guard let waiters = LockedWaiters(of: self), claim() else { return .refused }
        isCancelled = true
        guard waiters.contains(where: WatchingCore.isCleanUp),
            var oldest = waiters.removeAll(where: WatchingCore.isCleanUp)
        else { return .stopped(nil) }
        let end = EndOfCleanUps(self, error)
        while true {
            let (node, next) = (oldest, oldest.next)
            _ = AfterCleanUps(node.object, on: nil) { [end] in _ = end }
            deliver(.cancellation(error), to: node)
            guard let next else { return .willEnd(nil) }
            oldest = next
        }
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

/// Its last reference is released when the last clean-up of a cancelled resolver has ended.
private final class EndOfCleanUps {
    /// Claimed by the cancellation.
    private let core: PromiseCore
    private let error: (any Error)?

    init(_ core: PromiseCore, _ error: (any Error)?) {
        self.core = core
        self.error = error
    }

    deinit { core.reject(by: .itself(error), at: core.callSite) }
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

/// Runs the body if the promise was cancelled, and ends with the guarantee of the body; see `Resolver.onCancelThen`.
struct CleanUpOnCancel: Operation {
    typealias Input = Never
    typealias Output = Void
    let body: () -> Guarantee<Void>

    func run(_ source: AnySource, _ core: PromiseCore) {
        // A cancellation comes before the promise has settled, in place of it, except to a watcher that was added since.
        if (source.core as? ResolverCore)?.isCancelled == false { return core.finish(()) }
        core.finish(followingGuarantee: body().core, as: Void.self)
    }
}
