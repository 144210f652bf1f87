/// The state word of a core: the kind in the low two bits, two marks above it, and a pointer in the rest. These combinations
/// occur, and no others:
///
/// | Kind | Marks | Pointer | Meaning | Changed next by |
/// | --- | --- | --- | --- | --- |
/// | `pending` | | newest waiter, or 0 | No outcome yet, and no right to one given | any thread: pushes a waiter (CAS); `claim`; `lockWaiters`; the settling thread; the loop's thread: links it |
/// | `pending` | `isClaimed` | newest waiter, or 0 | A party has won the right to settle, and is about to | that party; any thread pushes waiters |
/// | `pending` | `isBusy` | newest waiter | A thread reads the list, or takes nodes out of it | that thread unlocks it; any thread pushes, or claims; who would take the list waits |
/// | `pending` | `isClaimed`, `isBusy` | newest waiter | Claimed while the list was locked | the thread that has locked it |
/// | `fulfilled` | | 0 | The value is in the payload | no thread; constant until the core ends |
/// | `fulfilled` | `isTrivial` | 0 | As above, and the end of the core has nothing to destroy | no thread |
/// | `fulfilled` | `isSettling`, perhaps `isTrivial` | newest late waiter, or 0 | The outcome is there, but earlier waiters are still being sent on their way | the settling thread: takes late waiters, or ends the settlement; any thread pushes |
/// | `rejected` | | 0 | The error is in the payload, and no handler has been told: reported if the core ends so | any thread: `markHandled` |
/// | `rejected` | `isHandled` | 0 | A handler has been told, or need not be | no thread |
/// | `rejected` | `isSettling`, perhaps `isHandled` | newest late waiter, or 0 | As for `fulfilled` | the settling thread; any thread pushes, or marks as handled |
/// | `link` | | root, owned | A handler returned this promise, and the root settles in its stead; its own producer settles the root | a producer that settles: marks it as claimed |
/// | `link` | `isClaimed` | root, owned | As above, and what the producer brings comes too late | no thread |
/// | `link` | | `PromiseCore.never` | Abandoned under `AbandonPolicy.log`: pending for ever | no thread |
///
/// So bit 4 is `isClaimed` (pending, link), `isTrivial` (fulfilled) or `isHandled` (rejected); bit 8 is `isBusy` (pending) or
/// `isSettling` (settled), and a link never has it. `pending` turns into any other kind, once; a link or an outcome stays one.
/// (`releaseLinks` writes `pending` over a link whose core is about to go, and that no other thread can see.)
@usableFromInline
enum State {
    // What the pointer is: the newest waiter; the same, for those who come during a settlement; the link's root (+1).
    @usableFromInline static var pending: UInt { 0 }
    @usableFromInline static var fulfilled: UInt { 1 }
    @usableFromInline static var rejected: UInt { 2 }
    @usableFromInline static var link: UInt { 3 }
    @usableFromInline static var kindMask: UInt { 3 }

    /// Pending: somebody has won the right to settle. Linked: what the producer would bring comes too late.
    @usableFromInline static var isClaimed: UInt { 4 }
    /// Fulfilled: the value needs no destruction.
    @usableFromInline static var isTrivial: UInt { 4 }
    /// Rejected: somebody has been told.
    @usableFromInline static var isHandled: UInt { 4 }
    /// Settled, and waiters are still being handed on, so later ones must queue behind them.
    @usableFromInline static var isSettling: UInt { 8 }
    /// Pending: somebody reads or thins out the list of waiters, for a moment; who wants to take it must wait.
    @usableFromInline static var isBusy: UInt { 8 }

    /// What a rejection becomes that has waiters: they are told.
    @inline(__always)
    static func handled(_ outcome: UInt) -> UInt { outcome & kindMask == rejected ? outcome | isHandled : outcome }

    @usableFromInline static var pointerMask: UInt { ~15 }
}

/// The word for what a node waits for: an address, and a mark in the low four bits. These combinations occur:
///
/// | Mark | Address | Meaning | Changed next by |
/// | --- | --- | --- | --- |
/// | `waiting` | 0 | Has never waited: a core without an operation, which `cancelProducer` or a resolver settles | the thread that attaches it, before it pushes it |
/// | `waiting` | the source, not owned | Stands in the list of that core | CAS by whoever settles or abandons the source (to the outcome, `abandoned`, or `rejected` for a cancellation), or by the node's own thread, which withdraws it (to `taken`) |
/// | `fulfilled` | the source, owned | Told of a value, and on its way to run | the node's thread: takes the operation out (to `taken`) |
/// | `rejected` | the source, owned; or a core with the cancellation | Told of an error, and on its way to run | as above; a cancellation may replace what an operation is told that cleans up |
/// | `adopted` | the core linked to it, not owned | Has run; the promise it returned is linked to it, and settles it | the loop's thread: the core linked next, or `taken` |
/// | `abandoned` | the source, owned | The source stays pending for ever; the operation is to be dropped | the node's thread (to `taken`) |
/// | `cancelled` | a core with the error, owned | `DispatchedNode` only: the result was cancelled, and the operation is told so | whoever takes the operation out: the job, or the end of it |
/// | `taken` | 0 | The operation has been taken out, to run or to be dropped; of a `hang`, woken | the node's thread, if it waits again: `adopted` or `waiting` |
///
/// Of a `DispatchedNode`, which has no thread, any thread may make each of these changes, by CAS.
///
/// As long as the mark is `waiting`, the address is not owned, and is good all the same: a pending core is held by
/// whoever is to settle it, and who gives that up first sends every waiter on its way, with a reference. It is by
/// this word that a cancellation climbs.
@usableFromInline
enum Upstream {
    /// The node stands in the list of this core. Not owned.
    @usableFromInline static var waiting: UInt { 0 }
    /// The source has settled so, and the node is on its way to run. Owned. The marks are the state's own.
    @usableFromInline static var fulfilled: UInt { State.fulfilled }
    @usableFromInline static var rejected: UInt { State.rejected }
    /// The node has run, and what its operation returned is now linked to it and will settle it. Not owned; both belong to
    /// one thread.
    @usableFromInline static var adopted: UInt { State.link }
    /// Nobody is left to settle the source. Owned.
    @usableFromInline static var abandoned: UInt { 4 }
    /// The operation has been taken out, to run or to be cancelled. No address.
    @usableFromInline static var taken: UInt { 8 }
    /// Of a `DispatchedNode`: its result has been cancelled, which it is told like of a rejection. Owned; and the claim of the
    /// result comes with it.
    static var cancelled: UInt { 6 }

    static var hasNoOutcome: UInt { abandoned | taken }
    @usableFromInline static var mark: UInt { 15 }
}
