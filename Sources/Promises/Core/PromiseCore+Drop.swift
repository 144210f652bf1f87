import CLinux
import Reactor
import Synchronization

// How an operation that does not run is destroyed. This releases the user's closure and its captures. A `deinit` there
// may cancel the next promise, and so on for as long as such objects hold one another.

extension PromiseCore {
    /// Destroys the operation, if it has not been taken out, and releases the source, if that has settled.
    func dropOperation() {
        let word = upstream.exchange(Upstream.taken, ordering: .acquiring)
        let mark = word & Upstream.mark
        guard mark != Upstream.taken && mark != Upstream.adopted else { return }
        dropWhatWaits()
        if mark != Upstream.waiting { Self.release(upstream: word) }
    }

    /// Destroys the payload of a core that waits or was about to run: its operation or, if it has run and is adopting
    /// another promise, the `AdoptingWaiter` in place of the operation. Must not be called if a promise linked to the
    /// core has made it an adopting one: the mark is then `adopted`.
    @inline(never)
    func dropWhatWaits() {
        if isAdopting { return dropAdoption() }
        // A thread without a loop may be ending, and gets no loop for this.
        guard dropsOnlyPayload, let loop = clinux_get_current_loop() else { return code(self, .drop) }
        Unmanaged<EventLoop>.fromOpaque(loop)._withUnsafeGuaranteedRef { loop in
            if loop.isDiscarding {
                // Inside a `deinit` that another dropped payload runs: do it afterwards, not nested.
                loop.discard(.passRetained(DroppedPayload(self)))
            } else {
                loop.discarding { code(self, .drop) }
            }
        }
    }

    /// Releases the source in a word that owns it.
    static func release(upstream word: UInt) {
        Unmanaged<PromiseCore>.fromOpaque(UnsafeRawPointer(bitPattern: word & State.pointerMask)!).release()
    }
}

/// An operation that is still to be destroyed, moved out of a core that continues without it.
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
