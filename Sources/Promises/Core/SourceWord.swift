import Synchronization

/// A node's source in one word: the address of a core, and a mark in the low four bits. These combinations occur:
///
/// | Mark | Address | Meaning | Changed next by |
/// | --- | --- | --- | --- |
/// | `none` | 0 | Waits for no core: the node is settled by the work of its operation, by a combinator or by a resolver; or its loop is ending | the thread that attaches the node, before pushing it; the node's thread: `taken` (stop, input), `fulfilled` (`enqueueAgain`), `rejected` (`rejectRead`) |
/// | `waiting` | the source, not owned | The node is in the source's list | the thread that settles the source (to the outcome), by CAS, or by a store if it has taken the list and the list has no other node; the node's own thread, or for a node without a loop any cancelling thread, by CAS (withdrawn, to `taken`) |
/// | `fulfilled` | the source, owned | The source was fulfilled; the node is scheduled to run | the node's thread: takes the operation out (to `taken`), or replaces the outcome by a cancellation (to `rejected`) |
/// | `rejected` | the source, owned; or a core with the cancellation | The source was rejected; the node is scheduled to run | as above |
/// | `linkedFrom` | the linked core, not owned | Another core is linked to this node, and settles it: the promise that the node's operation returned, or the core that took over the operation when the node left its source | the loop's thread: the core linked next, or `taken` |
/// | `taken` | 0 | The operation has been taken out, to run or to be dropped; a `hang` has been woken | the node's thread: `linkedFrom` (the node has left its source), or, if the node waits again, `linkedFrom`, `waiting`, `none` (`InputLoop.wait`), `fulfilled` (`enqueueAgain`), an outcome (`followSlow`) |
///
/// While the mark is `waiting`, the address is not owned, but valid: the producer of a pending core holds the core
/// until it has notified every waiter, each with a reference to the core, except a lone `hang`. A cancellation climbs
/// along this word.
@usableFromInline
struct SourceWord: Equatable {
    @usableFromInline enum Mark { case none, waiting, fulfilled, rejected, linkedFrom, taken }

    @usableFromInline let bits: UInt

    @inlinable @inline(__always)
    init(bits: UInt) { self.bits = bits }

    // MARK: Format. The marks of an outcome and of a link are those of `StateWord`.

    @usableFromInline static var takenBit: UInt { 8 }
    @usableFromInline static var markMask: UInt { 15 }

    var mark: Mark {
        switch bits & Self.markMask {
        case StateWord.fulfilledBits: .fulfilled
        case StateWord.rejectedBits: .rejected
        case StateWord.linkBits: .linkedFrom
        case Self.takenBit: .taken
        default: self == .none ? .none : .waiting
        }
    }

    @inlinable @inline(__always)
    var address: UInt { bits & ~Self.markMask }

    // MARK: Words

    /// The node waits for no core.
    @inlinable @inline(__always)
    static var none: SourceWord { SourceWord(bits: 0) }

    @inlinable @inline(__always)
    static var taken: SourceWord { SourceWord(bits: takenBit) }

    @inline(__always)
    static func waiting(forCoreAt address: UInt) -> SourceWord { SourceWord(bits: address) }

    @inline(__always)
    static func settled(_ address: UInt, as outcome: StateWord) -> SourceWord {
        SourceWord(bits: address | outcome.bits & StateWord.kindMask)
    }

    @inline(__always)
    static func linkedFrom(_ address: UInt) -> SourceWord { SourceWord(bits: address | StateWord.linkBits) }

    // MARK: Questions

    @inline(__always)
    var isWaiting: Bool { bits & Self.markMask == 0 && self != .none }

    /// For a word with an outcome.
    @inlinable @inline(__always)
    var isFulfilled: Bool { bits & StateWord.kindMask == StateWord.fulfilledBits }

    @inline(__always)
    var isLinkedFrom: Bool { bits & Self.markMask == StateWord.linkBits }

    @inline(__always)
    var isTaken: Bool { bits & Self.takenBit != 0 }
}

/// The source word of a core. The table at `SourceWord` names the threads that change it.
@usableFromInline
struct AtomicSourceWord: ~Copyable {
    @usableFromInline let word = Atomic<UInt>(0)

    @inlinable @inline(__always)
    init() {}

    @inlinable @inline(__always)
    func load() -> SourceWord { SourceWord(bits: word.load(ordering: .acquiring)) }

    /// For the party that changed the word last, or that only compares it.
    @inlinable @inline(__always)
    func loadRelaxed() -> SourceWord { SourceWord(bits: word.load(ordering: .relaxed)) }

    /// For the node's own thread, or the party that delivers to the node, while no other may change the word. Relaxed
    /// order suffices: the next thread that uses the address is the same one, or gets the node from a list or a
    /// mailbox, and the push onto that publishes the word. Other threads only check for a change.
    @inlinable @inline(__always)
    func store(_ sourceWord: SourceWord) { word.store(sourceWord.bits, ordering: .relaxed) }

    /// Marks the operation as taken out. Returns the previous word, with its reference.
    @inline(__always)
    func takeOut() -> SourceWord {
        SourceWord(bits: word.exchange(SourceWord.taken.bits, ordering: .acquiringAndReleasing))
    }

    /// - Returns: false, without any effect, if the word is no longer `seen`.
    @inline(__always)
    func replace(_ seen: SourceWord, by sourceWord: SourceWord) -> Bool {
        word.compareExchange(expected: seen.bits, desired: sourceWord.bits, ordering: .acquiringAndReleasing).exchanged
    }
}
