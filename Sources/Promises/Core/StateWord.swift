import Synchronization

/// The state of a core in one word: the kind in the low two bits, two marks above it, and the address of a core in the
/// rest. These combinations occur, and no others:
///
/// | Kind | Marks | Address | Meaning | Changed next by |
/// | --- | --- | --- | --- | --- |
/// | `pending` | | newest waiter, or 0 | No outcome yet, and the right to settle is not claimed | any thread: pushes a waiter (CAS), claims (`claim`), locks (`LockedWaiters`); the settling thread: settles; the loop's thread: links |
/// | `pending` | `claimed` | newest waiter, or 0 | A party has claimed the right to settle, and will settle, perhaps much later, after clean-ups | that party: settles; any thread: pushes waiters |
/// | `pending` | `locked` | newest waiter, or 0 | A thread reads the list, or removes nodes from it | that thread: unlocks; any thread: pushes, or claims; a thread that is about to take the list waits |
/// | `pending` | `claimed`, `locked` | newest waiter, or 0 | Claimed while the list was locked | the thread that has locked it: unlocks; any thread: pushes |
/// | `fulfilled` | | 0 | The value is in the payload | no thread; constant until the core is released |
/// | `fulfilled` | `trivial` | 0 | As above, and the value needs no destruction | no thread |
/// | `fulfilled` | `settling`, perhaps `trivial` | newest late waiter, or 0 | The value is in the payload, but not all earlier waiters have been notified yet | the settling thread: takes late waiters, or ends the settlement; any thread: pushes |
/// | `rejected` | | 0 | The error is in the payload, and no handler has received it; releasing the core in this state reports it | any thread: `markHandled` |
/// | `rejected` | `handled` | 0 | A handler has received the error, or none needs to | no thread |
/// | `rejected` | `settling`, perhaps `handled` | newest late waiter, or 0 | As for `fulfilled` and `settling` | the settling thread: as above; any thread: pushes, or `markHandled` |
/// | `link` | | root, owned | A handler returned this promise, to which only its producer referred, and that producer now settles the root; or this core has taken over the operation of the root, which has left its source | a producer that settles, or a cancellation: marks it as claimed |
/// | `link` | `claimed` | root, owned | As above, and its own producer's outcome is too late and ignored | no thread |
/// | `link` | `locked` | 0 | Kept by a loop, which has the only reference: see `SpareCores` | the loop's thread: makes a new promise from it |
///
/// One bit is `claimed` (pending, link), `trivial` (fulfilled) or `handled` (rejected), and another is `locked`
/// (pending) or `settling` (settled). Of links, only a kept core's has the `locked` bit. `pending` turns into any other
/// kind once; a link stays a link, and an outcome an outcome. (A party with the only reference to a core may rewrite
/// it: `releaseLinks` writes `pending` over a link that is about to be released, and `takeOrCopy` and `SpareCores`
/// write over outcomes and links.)
@usableFromInline
struct StateWord: Equatable {
    @usableFromInline enum StateKind { case pending, fulfilled, rejected, link }

    @usableFromInline let bits: UInt

    @inlinable @inline(__always)
    init(bits: UInt) { self.bits = bits }

    // MARK: Format

    @usableFromInline static var fulfilledBits: UInt { 1 }
    @usableFromInline static var rejectedBits: UInt { 2 }
    @usableFromInline static var linkBits: UInt { 3 }
    @usableFromInline static var kindMask: UInt { 3 }
    /// Claimed, trivial or handled.
    @usableFromInline static var markBit: UInt { 4 }
    /// Locked or settling.
    @usableFromInline static var busyBit: UInt { 8 }
    /// The addresses of cores are multiples of 16.
    @usableFromInline static var addressMask: UInt { ~15 }

    @usableFromInline
    var kind: StateKind {
        switch bits & Self.kindMask {
        case Self.fulfilledBits: .fulfilled
        case Self.rejectedBits: .rejected
        case Self.linkBits: .link
        default: .pending
        }
    }

    @inlinable @inline(__always)
    var address: UInt { bits & Self.addressMask }

    // MARK: Words

    @inlinable @inline(__always)
    static var pending: StateWord { StateWord(bits: 0) }

    /// Fulfilled; `isTrivial` for a value that needs no destruction.
    @inlinable @inline(__always)
    static func fulfilled(isTrivial: Bool) -> StateWord {
        StateWord(bits: isTrivial ? fulfilledBits | markBit : fulfilledBits)
    }

    /// Rejected, with an error that no handler has received.
    @inlinable @inline(__always)
    static var rejected: StateWord { StateWord(bits: rejectedBits) }

    /// Rejected, with an error that needs no handler.
    @inlinable @inline(__always)
    static var rejectedAndHandled: StateWord { StateWord(bits: rejectedBits | markBit) }

    /// A link to the core at `address`, which it owns.
    @inlinable @inline(__always)
    static func link(toAddress address: UInt) -> StateWord { StateWord(bits: address | linkBits) }

    /// Kept by a loop for reuse: a link to nothing, which traps when followed.
    static var spare: StateWord { StateWord(bits: linkBits | busyBit) }

    // MARK: Questions

    @inlinable @inline(__always)
    var isPending: Bool { bits & Self.kindMask == 0 }

    @inlinable @inline(__always)
    var isFulfilled: Bool { bits & Self.kindMask == Self.fulfilledBits }

    @inlinable @inline(__always)
    var isRejected: Bool { bits & Self.kindMask == Self.rejectedBits }

    @inlinable @inline(__always)
    var isLink: Bool { bits & Self.kindMask == Self.linkBits }

    /// True when pending, and no party has claimed the right to settle.
    @inlinable @inline(__always)
    var isClaimable: Bool { bits & (Self.kindMask | Self.markBit) == 0 }

    /// True when the outcome of an operation still counts: its core is pending, or linked, and not claimed.
    @inlinable @inline(__always)
    var isOpen: Bool { isClaimable || bits & (Self.kindMask | Self.markBit) == Self.linkBits }

    /// Only for a rejection.
    @inline(__always)
    var isHandled: Bool { bits & Self.markBit != 0 }

    @inline(__always)
    var isFulfilledTrivially: Bool {
        bits & (Self.kindMask | Self.markBit) == Self.fulfilledBits | Self.markBit
    }

    /// Only for a pending core.
    @inline(__always)
    var isLocked: Bool { bits & Self.busyBit != 0 }

    /// True when pending, and the party with the right to settle may take the list of waiters.
    @inline(__always)
    var hasListToTake: Bool { bits & (Self.kindMask | Self.busyBit) == 0 }

    /// True when fulfilled, and all earlier waiters have been notified.
    @inlinable @inline(__always)
    var isFulfilledForAll: Bool { bits & (Self.kindMask | Self.busyBit) == Self.fulfilledBits }

    /// True when a new waiter joins the list: the core is pending, or is still notifying earlier waiters.
    @inline(__always)
    var takesWaiters: Bool { isPending || !isLink && bits & Self.busyBit != 0 }

    // MARK: Transitions

    /// This word, marked as claimed; for a link, its own producer is then too late.
    @inline(__always)
    var claimed: StateWord { StateWord(bits: bits | Self.markBit) }

    @inline(__always)
    var locked: StateWord { StateWord(bits: bits | Self.busyBit) }

    /// Unlocks the list, whose newest waiter is at `address`.
    @inline(__always)
    func unlocked(withWaiterAt address: UInt) -> StateWord {
        StateWord(bits: address | bits & ~Self.addressMask & ~Self.busyBit)
    }

    @inline(__always)
    func pushing(waiterAt address: UInt) -> StateWord { StateWord(bits: address | bits & ~Self.addressMask) }

    /// This word after the list of waiters has been taken.
    @inline(__always)
    var withoutWaiters: StateWord { StateWord(bits: bits & ~Self.addressMask) }

    /// This outcome while some waiters must still be notified.
    @inline(__always)
    var settling: StateWord { StateWord(bits: bits | Self.busyBit) }

    /// This outcome when a handler receives it: a rejection is then handled.
    @inline(__always)
    var handled: StateWord { isRejected ? StateWord(bits: bits | Self.markBit) : self }

    /// Adds the mark bit of `seen`. For an outcome the bit means that the error has been read (a fulfilled promise has
    /// the bit from the start, or never); for a new link, that its own producer is too late.
    @inline(__always)
    func marked(asIn seen: StateWord) -> StateWord { StateWord(bits: bits | seen.bits & Self.markBit) }
}

/// The state of a core, which any thread may change.
///
/// A reference must be published by a replacement, never by `store`: Swift 6.3.1 may move a `swift_retain` below a
/// store with releasing order, and another thread could then release the reference before it is counted.
@usableFromInline
struct AtomicState: ~Copyable {
    @usableFromInline let word: Atomic<UInt>

    @inlinable @inline(__always)
    init(_ state: StateWord) { word = Atomic(state.bits) }

    @inlinable @inline(__always)
    func load() -> StateWord { StateWord(bits: word.load(ordering: .acquiring)) }

    /// For callers that need only the core's progress, and read nothing that depends on it.
    @inlinable @inline(__always)
    func loadRelaxed() -> StateWord { StateWord(bits: word.load(ordering: .relaxed)) }

    /// The caller must have the only reference to the core.
    @inlinable @inline(__always)
    func store(_ state: StateWord) { word.store(state.bits, ordering: .relaxed) }

    /// - Returns: false, without any effect, if the state is no longer `seen`.
    @inlinable @inline(__always)
    func replace(_ seen: StateWord, by state: StateWord) -> Bool {
        word.compareExchange(expected: seen.bits, desired: state.bits, ordering: .acquiringAndReleasing).exchanged
    }

    /// Like `replace`, and updates `seen` to the current state on failure. May fail spuriously.
    @inline(__always)
    func tryToReplace(_ seen: inout StateWord, by state: StateWord) -> Bool {
        let (done, now) = word.weakCompareExchange(
            expected: seen.bits, desired: state.bits, ordering: .acquiringAndReleasing)
        if !done { seen = StateWord(bits: now) }
        return done
    }

    /// Publishes a waiter, like `tryToReplace`, but fails only if the state is no longer `seen`.
    @inline(__always)
    func push(waiterAt address: UInt, _ seen: inout StateWord) -> Bool {
        let (done, now) = word.compareExchange(
            expected: seen.bits, desired: seen.pushing(waiterAt: address).bits, successOrdering: .releasing,
            failureOrdering: .acquiring)
        if !done { seen = StateWord(bits: now) }
        return done
    }

    /// Marks a link whose own producer is too late.
    func markClaimed() { word.bitwiseOr(StateWord.markBit, ordering: .relaxed) }

    /// Only for a rejection.
    func markHandled() { word.bitwiseOr(StateWord.markBit, ordering: .relaxed) }

    /// Only for the thread that has locked the list.
    func unlock() { word.bitwiseAnd(~StateWord.busyBit, ordering: .releasing) }
}
