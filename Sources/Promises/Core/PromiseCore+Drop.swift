import CLinux
import Reactor
import Synchronization

// How an operation ends that does not run. With it goes the user's closure, and what that has captured: a `deinit` there may
// cancel the next promise, and so on for as long as such objects hold one another.

extension PromiseCore {
    /// Destroys the operation, if it has not been taken out, and releases the source, if it came.
    func dropOperation() {
        let word = upstream.exchange(Upstream.taken, ordering: .acquiring)
        let mark = word & Upstream.mark
        guard mark != Upstream.taken && mark != Upstream.adopted else { return }
        dropWhatWaits()
        if mark != Upstream.waiting { Self.release(upstream: word) }
    }

    /// Destroys what stands in the payload of a core that waits, or was about to run: its operation or, of one that has run
    /// and forwards, the `AdoptingWaiter` in its place. Not for one that has been made to forward by what is linked to it: that has
    /// adopted.
    @inline(never)
    func dropWhatWaits() {
        if isAdopting { return dropFollower() }
        // A thread without a loop, which may be ending, is not given one for this.
        guard dropsOnlyPayload, let loop = clinux_get_current_loop() else { return code(self, .drop) }
        Unmanaged<EventLoop>.fromOpaque(loop)._withUnsafeGuaranteedRef { loop in
            if loop.isDiscarding {
                // In a `deinit` of what another core has dropped: after that and not inside it.
                loop.discard(.passRetained(DroppedPayload(self)))
            } else {
                loop.discarding { code(self, .drop) }
            }
        }
    }

    /// Releases a source that has come.
    static func release(upstream word: UInt) {
        Unmanaged<PromiseCore>.fromOpaque(UnsafeRawPointer(bitPattern: word & State.pointerMask)!).release()
    }
}

/// An operation that is still to be destroyed, out of a core that goes on without it.
// @unchecked Sendable: as PromiseCore; used on one thread only.
private final class DroppedPayload: PromiseCore, @unchecked Sendable {
    init(_ core: PromiseCore) {
        super.init(state: State.pending, loop: nil, code: core.code)
        movePayload(from: core)
        upstream.store(Upstream.taken, ordering: .relaxed)
    }

    override func discardAndRelease() {
        code(self, .drop)
        Unmanaged.passUnretained(self).release()
    }
}
