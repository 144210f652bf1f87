import Reactor

/// The one object behind a promise: its state, its value, its place in every queue, and the operation that settles it.
///
/// `map` makes one of these and nothing else: the child promise *is* the waiter in its parent's list, *is* the job in
/// the loop's ready queue, *is* the mail to another thread. So a hop needs two blocks: the user's closure, and the
/// core, which often comes from the loop's spare ones: see `SpareCores`.
///
/// The class is not generic, since a generic class's methods run unspecialised through its vtable, and its `deinit`
/// would look up metadata for every value. The specialised code is a function, made in `@inlinable` code that knows the
/// types: see `CoreCode`.
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
// until deinit. Each hand-over is a releasing write and an acquiring load of `state`, or a loop's mailbox. Values of a
// type that is not Sendable stay on one thread because Promise<T> then is not Sendable either.
@usableFromInline
package class PromiseCore: Job, @unchecked Sendable {
    @usableFromInline final let state: AtomicState
    /// The loop whose thread runs this node's operation. `nil` runs it inline, on the thread that settles the source.
    // Constant, like `code`, from `init` or `reset` on. Exclusivity is unchecked, because only `reset` writes them.
    @exclusivity(unchecked) @usableFromInline private(set) final var loop: LoopRef?
    @exclusivity(unchecked) private(set) final var code: CoreCode
    // Accessed through `payload` only; see CorePayload.
    @exclusivity(unchecked)
    private final var payloadWords: (UInt, UInt, UInt) = (0, 0, 0)
    /// The node's source, and the progress of the wait for it.
    @usableFromInline final let sourceWord = AtomicSourceWord()
    /// Accessed only on the thread of the core's loop: the marks in the low five bits, and above them a number.
    @exclusivity(unchecked) private final var threadWord: UInt32 = 0
    final let shared = SharedWord()

    @usableFromInline
    init(state: StateWord, loop: LoopRef?, role: CoreRole = [], code: CoreCode) {
        self.state = AtomicState(state)
        self.loop = loop
        self.code = code.with(role)
        // Before `super.init`, after which the compiler would retain this core for the call.
        loop?.coreDidBegin()
        super.init()
        #if DEBUG
        if let fault = layoutFault() { fatalError("swift-reactor: \(fault)") }
        #endif
    }

    /// Makes a kept core, to which the caller has the only reference, a new one without contents.
    @inline(__always)
    final func reset(_ state: StateWord, _ loop: LoopRef?, _ code: CoreCode) {
        // Two loops are the same one, since only that keeps the core.
        if loop == nil { self.loop?.coreDidEnd() } else if self.loop == nil { loop?.coreDidBegin() }
        self.loop = loop
        self.code = code
        self.state.store(state)
        sourceWord.store(.none)
        threadWord = 0
        shared.clear()
    }

    /// For `layoutFault`: returns true when these words are the payload, which is empty.
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

    /// The number of the waiter among its loop's `CrossThreadWaiters`, or zero. It has 27 bits, the limit there.
    final var crossThreadNumber: UInt32 {
        @inline(__always) get { threadWord >> 5 }
        @inline(__always) set { threadWord = threadWord & 0x1F | newValue << 5 }
    }

    @inline(__always)
    final func has(_ annotation: CoreAnnotations) -> Bool { shared.annotations.contains(annotation) }

    final func annotate(_ annotation: CoreAnnotations) { shared.annotate(annotation) }

    // MARK: What kinds of cores differ in

    /// The line that made the promise, if it is externally settled.
    @usableFromInline
    var callSite: CallSite? { nil }

    /// This core, if it settles when its several sources have. (A cast would take twenty instructions.)
    var asCombinator: CombinatorCore? { nil }

    /// Ends the work that would settle this externally settled promise, and rejects the promise, now or when the work
    /// has ended, or returns where the climb continues. Any thread.
    func cancelExternally(with error: (any Error)?) -> Cancellation.Step { .cannotStop }

    /// Handles the arrival at the source of the cancellation that `cancelExternally` has let climb. `waiter` will bring
    /// the source's error. Any thread.
    func cancellationDidClimb(over waiter: PromiseCore) {}

    /// Returns whether the job that settles this externally settled promise is in the queue of that pool, and the
    /// promise that must settle before there is a job. Any thread.
    func placeOfJob(in pool: ObjectIdentifier) -> (isQueued: Bool, behind: PromiseCore?) { (false, nil) }

    /// The fast path for a source that only `node` has ever waited for, like most losers of a race: cancels it and
    /// takes the node out of the list, whose reference the caller then owns.
    /// - Returns: false, without any effect, in all other cases.
    func cancel(ifOnly node: CoreRef) -> Bool { false }

    /// True when this externally settled promise continues after its last waiter has withdrawn.
    var isAlwaysWanted: Bool { false }

    // MARK: The core as a job

    /// As the job of a timer: its promise is fulfilled.
    package override func run() { fulfill(()) }

    package override func runAndRelease() {
        leaveLoop()
        let word = sourceWord.loadRelaxed()
        if !word.isTaken { return marks.contains(.hasNextStep) ? runNextStep() : code(self, .run) }
        // Its combinator no longer needs it, or its loop has ended.
        release()
    }

    package override var isCountedAsWaiting: Bool { marks.contains(.countsAsWaiting) }

    /// Called under a lock that its deinit would need, so it is not retained: it may be about to be released.
    package override var isStillWaiting: Bool {
        let seen = rootRef.borrow { $0.state.load() }
        // A link that was made since.
        return seen.isPending || seen.isLink
    }

    package override var isReportedUndelivered: Bool { role.isDisjoint(with: .uncounted) }

    // Called only while handlers are measured.
    package override var kind: HandlerKind { .promiseHandler }
    package override var handlerCallSite: CallSite? { record?.step.flatMap { $0.callSite.isKnown ? $0.callSite : nil } }
    package override var subject: (any AnyObject & Sendable)? { record }

    /// On the thread of the handler's loop, which is ending.
    package override func discardAndRelease() {
        leaveLoop()
        dropOperation()
        producerDidEnd(.loopEnded)
        super.discardAndRelease()
    }

    package override func discardIfWaiting() -> Bool {
        // Another thread that has taken the list releases the tombstone as soon as it finds it.
        let node = CoreRef.retaining(self)
        defer { node.release() }
        // If not withdrawn here, it is on its way to the loop's mailbox, or there.
        guard withdraw() != nil else { return false }
        producerDidEnd(.loopEnded)
        return true
    }

    package override var awaitedCallSite: CallSite? {
        // Until this thread runs the waiter, the word keeps the source, waiting or settled.
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
    /// The source has settled: run the operation, which consumes the caller's reference to the node.
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
