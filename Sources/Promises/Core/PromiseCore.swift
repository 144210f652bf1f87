import Reactor

/// The one object behind a promise: its state, its value, its place in every queue, and the operation that settles it.
///
/// `map` makes one core and nothing else: the child promise *is* the waiter in its parent's list, *is* the job in the
/// loop's ready queue, *is* the mail to another thread. So a step of a chain needs two blocks: the user's closure, and
/// the core, often one of the loop's spare cores: see `SpareCores`.
///
/// The class is not generic: a generic class's methods would run unspecialised through its vtable, and its `deinit`
/// would look up metadata for every value. Functions made in `@inlinable` code, which knows the types, are the
/// specialised code: see `CoreCode`.
///
/// The contents of the `payload`, three words:
///
///     waiting for a source           the operation: one closure and one more word
///     waiting for its next step      a closure: adopts an outcome, or rejects; see `continueBy`
///     waiting, of a combinator       the combinator and an index: see `InputNode`
///     pending, externally settled    -
///     pending, of a read             an operation that refers to the connection: see `InputLoop`
///     pending, of other producers    the producer, not owned: see `Produced`
///     pending, of a timer            an operation that has the timer's id
///     fulfilled                      the value, or a pointer to it if it takes more than 24 bytes
///     rejected                       the error | file and line of the promise that was rejected first
// @unchecked Sendable: `state` decides which thread may access the rest. While pending, `payload` belongs to the one
// holder of the right to settle, and `next` to the list that contains the node. Once settled, `payload` is constant
// until deinit. Each hand-over is a releasing write and an acquiring load of `state`, or uses a loop's mailbox. Values
// of a type that is not Sendable stay on one thread, because their Promise<T> is not Sendable either.
@usableFromInline
package class PromiseCore: Job, @unchecked Sendable {
    @usableFromInline final let state: AtomicState
    /// The loop whose thread runs this node's operation; `nil` if the operation runs inline, on the thread that settles
    /// the source.
    // Constant, like `code`, from `init` or `reset` on. Exclusivity is unchecked, because only `reset` writes them.
    @exclusivity(unchecked) @usableFromInline private(set) final var loop: LoopRef?
    @exclusivity(unchecked) private(set) final var code: CoreCode
    // Accessed through `payload` only; see CorePayload.
    @exclusivity(unchecked)
    private final var payloadWords: (UInt, UInt, UInt) = (0, 0, 0)
    /// The node's source, and the progress of the wait for it.
    @usableFromInline final let sourceWord = AtomicSourceWord()
    /// The marks, in the low five bits, and above them `crossThreadNumber`. Accessed only on the thread of the core's
    /// loop.
    @exclusivity(unchecked) private final var threadWord: UInt32 = 0
    final let shared = SharedWord()

    @usableFromInline
    init(state: StateWord, loop: LoopRef?, role: CoreRole = [], code: CoreCode) {
        self.state = AtomicState(state)
        self.loop = loop
        self.code = code.with(role)
        // After `super.init` the compiler would retain this core for the call.
        loop?.coreDidBegin()
        super.init()
        #if DEBUG
        if let fault = layoutFault() { fatalError("swift-reactor: \(fault)") }
        #endif
    }

    /// Turns a kept core, to which the caller has the only reference, into a new one without contents.
    @inline(__always)
    final func reset(_ state: StateWord, _ loop: LoopRef?, _ code: CoreCode) {
        // If both loops exist they are the same, since only its own loop keeps a core.
        if loop == nil { self.loop?.coreDidEnd() } else if self.loop == nil { loop?.coreDidBegin() }
        self.loop = loop
        self.code = code
        self.state.store(state)
        sourceWord.store(.none)
        threadWord = 0
        shared.clear()
    }

    /// Returns true when `words` are this core's payload, which must be empty. For `layoutFault`.
    final func hasPayload(at words: UnsafeMutablePointer<UInt>) -> Bool {
        payloadWords = (1, 2, 3)
        defer { payloadWords = (0, 0, 0) }
        return words[0] == 1 && words[1] == 2 && words[2] == 3
    }

    // MARK: What the words hold

    final var role: CoreRole { @inline(__always) get { code.role } }

    @usableFromInline final var marks: CoreMarks {
        @inline(__always) get { CoreMarks(rawValue: UInt8(truncatingIfNeeded: threadWord & 0x1F)) }
        @inline(__always) set { threadWord = threadWord & ~0x1F | UInt32(newValue.rawValue) }
    }

    /// The waiter's number among its loop's `CrossThreadWaiters`, or zero. It has 27 bits, which is the limit there.
    final var crossThreadNumber: UInt32 {
        @inline(__always) get { threadWord >> 5 }
        @inline(__always) set { threadWord = threadWord & 0x1F | newValue << 5 }
    }

    @inline(__always)
    final func has(_ annotation: CoreAnnotations) -> Bool { shared.annotations.contains(annotation) }

    final func annotate(_ annotation: CoreAnnotations) { shared.annotate(annotation) }

    // MARK: What kinds of cores differ in

    /// The line that made the promise; `nil` unless externally settled.
    @usableFromInline
    var callSite: CallSite? { nil }

    /// This core, if it is a combinator's. (A cast would take twenty instructions.)
    var asCombinator: CombinatorCore? { nil }

    /// Stops the work of this externally settled promise, and rejects the promise, now or when the work has ended; or
    /// returns where the climb continues. Called on any thread.
    func cancelExternally(with error: (any Error)?) -> Cancellation.Step { .cannotStop }

    /// Notes that the cancellation that `cancelExternally` let climb has reached the source, whose error `waiter` will
    /// bring. Called on any thread.
    func cancellationDidClimb(over waiter: PromiseCore) {}

    /// Returns true if the job that settles this promise is in that pool's queue; `behind` must settle before there is
    /// a job. May be called on any thread.
    func placeOfJob(in pool: ObjectIdentifier) -> (isQueued: Bool, behind: PromiseCore?) { (false, nil) }

    /// Cancels this source and takes `node` out of the list, whose reference the caller then owns. A fast path for a
    /// source that only `node` has ever waited for, like most losers of a race.
    /// - Returns: false, without any effect, in all other cases.
    func cancel(ifOnly node: CoreRef) -> Bool { false }

    /// True when this externally settled promise continues after its last waiter has withdrawn.
    var isAlwaysWanted: Bool { false }

    // MARK: The core as a job

    /// Fulfills this promise, as a timer's job.
    package override func run() { fulfill(()) }

    package override func runAndRelease() {
        leaveLoop()
        let word = sourceWord.loadRelaxed()
        if !word.isTaken { return marks.contains(.hasNextStep) ? runNextStep() : code(self, .run) }
        // The combinator no longer needs this node, or the node's loop has ended.
        release()
    }

    package override var isCountedAsWaiting: Bool { marks.contains(.countsAsWaiting) }

    /// Called under a lock that the core's deinit would need. So the core, which may be about to be released, is not
    /// retained.
    package override var isStillWaiting: Bool {
        let seen = rootRef.borrow { $0.state.load() }
        // A link was made after `rootRef` was read.
        return seen.isPending || seen.isLink
    }

    package override var isReportedUndelivered: Bool { role.isDisjoint(with: .uncounted) }

    // Called only while handlers are measured.
    package override var kind: HandlerKind { .promiseHandler }
    package override var handlerCallSite: CallSite? { record?.step.flatMap { $0.callSite.isKnown ? $0.callSite : nil } }
    package override var subject: (any AnyObject & Sendable)? { record }

    /// Called on the thread of this core's loop, which is ending.
    package override func discardAndRelease() {
        leaveLoop()
        dropOperation()
        producerDidEnd(.loopEnded)
        super.discardAndRelease()
    }

    package override func discardIfWaiting() -> Bool {
        // Another thread that has taken the list may release the tombstone as soon as it finds it.
        let node = CoreRef.retaining(self)
        defer { node.release() }
        // If not withdrawn here, the node is in the loop's mailbox, or about to be.
        guard withdraw() != nil else { return false }
        producerDidEnd(.loopEnded)
        return true
    }

    package override var awaitedCallSite: CallSite? {
        // Until this thread runs the waiter, the source in `sourceWord` stays alive.
        let word = sourceWord.load()
        return word.isWaiting ? word.core.borrow { $0.callSite } : nil
    }

    deinit {
        if !shared.annotations.isEmpty {
            endAnnotated()
        } else if !state.load().isFulfilledTrivially {
            // A plain value leaves nothing to do, not even a call.
            destroyContents()
        }
        loop?.coreDidEnd()
    }
}

@usableFromInline
package enum CorePhase {
    /// The source has settled: run the operation. That consumes the caller's reference to the node.
    case run
    /// The operation will not run: drop it.
    case drop
    /// The node is released and fulfilled: destroy the value.
    case destroy
    /// The node, without a source, is cancelled: end the work, and record that in `sourceWord`.
    case stop
    /// The awaited input has arrived: continue. Consumes the caller's reference to the node.
    case input
}
