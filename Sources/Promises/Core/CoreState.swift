/// The state word of a core: the kind in the low two bits, two marks above it, and a pointer in the rest. These
/// combinations occur, and no others:
///
/// | Kind | Marks | Pointer | Meaning | Changed next by |
/// | --- | --- | --- | --- | --- |
/// | `pending` | | newest waiter, or 0 | No outcome yet, and the right to settle is not claimed | any thread: pushes a waiter (CAS); `claim`; `lockWaiters`; the settling thread; the loop's thread: links it |
/// | `pending` | `isClaimed` | newest waiter, or 0 | A party has claimed the right to settle and is about to settle | that party; any thread pushes waiters |
/// | `pending` | `isBusy` | newest waiter | A thread reads the list, or removes nodes from it | that thread unlocks it; any thread pushes, or claims; a thread that is about to take the list waits |
/// | `pending` | `isClaimed`, `isBusy` | newest waiter | Claimed while the list was locked | the thread that has locked it |
/// | `fulfilled` | | 0 | The value is in the payload | no thread; constant until the core is released |
/// | `fulfilled` | `isTrivial` | 0 | As above, and the value needs no destruction | no thread |
/// | `fulfilled` | `isSettling`, perhaps `isTrivial` | newest late waiter, or 0 | The value is in the payload, but not all earlier waiters have been notified yet | the settling thread: takes late waiters, or ends the settlement; any thread pushes |
/// | `rejected` | | 0 | The error is in the payload, and no handler has received it: reported if the core is released in this state | any thread: `markHandled` |
/// | `rejected` | `isHandled` | 0 | A handler has received the error, or none needs to | no thread |
/// | `rejected` | `isSettling`, perhaps `isHandled` | newest late waiter, or 0 | As for `fulfilled` | the settling thread; any thread pushes, or marks as handled |
/// | `link` | | root, owned | A handler returned this promise, which is now an alias of the root; its own producer settles the root | a producer that settles: marks it as claimed |
/// | `link` | `isClaimed` | root, owned | As above, and the outcome of its own producer is ignored, since it is too late | no thread |
/// | `link` | | `PromiseCore.never` | Abandoned under `AbandonPolicy.log`: pending forever | no thread |
/// | `link` | `isBusy` | 0 | Kept by a loop, which has the only reference: see PromiseCore+Reuse.swift | the loop's thread: makes it another, pending promise |
///
/// So bit 4 is `isClaimed` (pending, link), `isTrivial` (fulfilled) or `isHandled` (rejected). Bit 8 is `isBusy`
/// (pending) or `isSettling` (settled), and no link of a promise has it. `pending` turns into any other kind, once; a link or
/// an outcome stays one. (`releaseLinks` writes `pending` over a link whose core is about to be released, and which no
/// other thread can see.)
@usableFromInline
enum State {
    // The pointer: of `pending`, the newest waiter; of an outcome, the newest waiter that was attached during the
    // settlement; of a link, its root (+1).
    @usableFromInline static var pending: UInt { 0 }
    @usableFromInline static var fulfilled: UInt { 1 }
    @usableFromInline static var rejected: UInt { 2 }
    @usableFromInline static var link: UInt { 3 }
    @usableFromInline static var kindMask: UInt { 3 }

    /// Pending: a party has claimed the right to settle. Linked: the outcome of the core's own producer comes too late.
    @usableFromInline static var isClaimed: UInt { 4 }
    /// Fulfilled: the value needs no destruction.
    @usableFromInline static var isTrivial: UInt { 4 }
    /// Rejected: a handler has received the error.
    @usableFromInline static var isHandled: UInt { 4 }
    /// Settled, but not all waiters have been notified yet, so later waiters must queue behind them.
    @usableFromInline static var isSettling: UInt { 8 }
    /// Pending: a thread briefly reads the list of waiters, or removes some of them. A thread that is about to take the
    /// list must wait.
    @usableFromInline static var isBusy: UInt { 8 }

    /// No promise: kept by a loop, to be used again. As a link that leads nowhere it traps where it is followed.
    static var spare: UInt { link | isBusy }

    /// The state word for an outcome that waiters receive: a rejection is then handled.
    @inline(__always)
    static func handled(_ outcome: UInt) -> UInt { outcome & kindMask == rejected ? outcome | isHandled : outcome }

    @usableFromInline static var pointerMask: UInt { ~15 }
}

/// What a node waits for, in one word: an address, and a mark in the low four bits. These combinations occur:
///
/// | Mark | Address | Meaning | Changed next by |
/// | --- | --- | --- | --- |
/// | `waiting` | 0 | Has never waited: a core without an operation, which `cancelProducer` or a resolver settles | the thread that attaches it, before it pushes it |
/// | `waiting` | the source, not owned | Is in the list of that core | CAS by the thread that settles or abandons the source (to the outcome, `abandoned`, or `rejected` for a cancellation), or by the node's own thread, which withdraws it (to `taken`) |
/// | `fulfilled` | the source, owned | The source was fulfilled; the node is scheduled to run | the node's thread: takes the operation out (to `taken`) |
/// | `rejected` | the source, owned; or a core with the cancellation | The source was rejected; the node is scheduled to run | as above; a cancellation may replace the error that a cleaning-up operation receives |
/// | `adopted` | the core linked to it, not owned | Has run; the promise that its operation returned is linked to it and settles it | the loop's thread: the core linked next, or `taken` |
/// | `abandoned` | the source, owned | The source stays pending forever; the operation is to be dropped | the node's thread (to `taken`) |
/// | `cancelled` | a core with the error, owned | `DispatchedNode` only: the result was cancelled, and the operation receives the error | the party that takes the operation out: the job, or the node's deinit |
/// | `taken` | 0 | The operation has been taken out, to run or to be dropped; of a `hang`, it has been woken | the node's thread, if it waits again: `adopted` or `waiting` |
///
/// A `DispatchedNode` has no thread of its own: any thread may make each of these changes, by CAS.
///
/// While the mark is `waiting`, the address is not owned, but it is valid nevertheless: the producer of a pending core
/// holds that core, and notifies every waiter, with a reference, before it releases the core. A cancellation climbs by
/// this word.
@usableFromInline
enum Upstream {
    /// The node is in the list of this core. Not owned.
    @usableFromInline static var waiting: UInt { 0 }
    /// The source has settled with this outcome, and the node is scheduled to run. Owned. The marks are those of
    /// `State`.
    @usableFromInline static var fulfilled: UInt { State.fulfilled }
    @usableFromInline static var rejected: UInt { State.rejected }
    /// The node has run, and the promise that its operation returned is now linked to it and will settle it. Not owned;
    /// both belong to one thread.
    @usableFromInline static var adopted: UInt { State.link }
    /// The source has no producer any more. Owned.
    @usableFromInline static var abandoned: UInt { 4 }
    /// The operation has been taken out, to run or to be cancelled. No address.
    @usableFromInline static var taken: UInt { 8 }
    /// `DispatchedNode` only: its result has been cancelled, which its operation receives like a rejection. Owned. The
    /// claim of the result comes with it.
    static var cancelled: UInt { 6 }

    static var hasNoOutcome: UInt { abandoned | taken }
    @usableFromInline static var mark: UInt { 15 }
}
