import Reactor
import Synchronization

/// Promises that are made one after the other: what `forEach`, `thenReduce` and `repeatWhile` have in common.
///
/// The core of the result waits for each of them itself, and runs again when that has settled: a round costs no memory of
/// its own and no depth of stack, and cancelling the result climbs to the promise of the round. Each round is a job of
/// the loop, even if its promise has settled, so that an endless row of them leaves room for everything else.
@usableFromInline
struct SequentialOperation<Value>: Operation {
    @usableFromInline typealias Input = Void
    @usableFromInline typealias Output = Value
    /// One round: is told the promise that has been fulfilled, `nil` if there was none, and answers the next one to wait for; or
    /// `nil`, when it has finished the core.
    @usableFromInline let round: (Unmanaged<PromiseCore>?, PromiseCore) throws -> PromiseCore?

    @inlinable init(_ round: @escaping (Unmanaged<PromiseCore>?, PromiseCore) throws -> PromiseCore?) {
        self.round = round
    }

    /// A core that `start` is to be called with.
    @inlinable
    func makeCore() -> PromiseCore {
        let core = PromiseCore(state: State.pending, loop: EventLoop.addressOfThisThread) {
            PromiseCore.perform(Self.self, $0, $1)
        }
        core.upstream.store(Upstream.taken, ordering: .relaxed)
        return core
    }

    /// Runs the first round at once.
    @inlinable
    func start(_ core: PromiseCore) -> PromiseCore {
        core.retain()
        run(after: nil, core)
        return core
    }

    @inlinable @inline(__always)
    func run(_ source: Source<Void>, _ core: PromiseCore) {
        guard source.isFulfilled else { return core.finish(rejectedAs: source.reference) }
        run(after: source.reference, core)
    }

    @inlinable
    func run(after source: Unmanaged<PromiseCore>?, _ core: PromiseCore) {
        do {
            if let next = try round(source, core) { core.wait(for: next, andRun: self) }
        } catch { core.finish(throwing: error) }
    }
}

extension PromiseCore {
    /// Lets this core, whose operation has run, run another one after `inner`. Consumes a reference to this core.
    @inlinable
    func wait<Op: Operation>(for inner: PromiseCore, andRun operation: consuming Op) {
        guard prepareToWait(for: inner) else { return Unmanaged.passUnretained(self).release() }
        store(operation)
        inner.attach(self)
        Unmanaged.passUnretained(self).release()
    }

    @usableFromInline
    func prepareToWait(for inner: PromiseCore) -> Bool {
        guard isOpen else {
            // Cancelled while its operation ran: what that has returned is not wanted any more.
            inner.cancelIfUnobserved()
            return false
        }
        if inner.unmanagedRoot.toOpaque() == unmanagedRoot.toOpaque() {
            storeError(PromiseError.returnedSelf, nil)
            retain()
            settle(State.rejected)
            return false
        }
        if Tracing.isOn { TraceRegistry.adopt(self, inner) }
        // How it came to what it has waited for before says nothing of this.
        cameByLink = false
        return true
    }
}
