/// The required behaviour of the promises of one loop, in the simplest form: a promise is an outcome and a list of
/// waiters, the loop is a list of jobs.
final class ModelPromises: PromiseImplementation {
    final class Core {
        /// Its number, if it has a resolver.
        let origin: Int?
        /// Its outcome, and the origin of the error.
        var settlement: (outcome: Outcome, origin: Int?)?
        var waiters: [Waiter] = []
        /// Waiters are being notified; new ones are added after them.
        var isSettling = false
        /// A resolver has won; or the result of a handler is too late.
        var isClaimed = false
        /// A waiter has received its outcome, or it was read.
        var isHandled = false
        /// The number of holders, apart from the model. The library checks it for a promise that a handler has
        /// returned.
        var holders = 0
        /// This promise, which only the model holds, has merged with that of the handler for which it was made.
        var link: Core?
        /// The reverse: the promise that will settle this one.
        var producer: Core?
        /// A handler returned that promise, and this one waits to settle as that one does.
        var follows: Core?
        /// The waiters with which it waits for others.
        var waits: [Waiter] = []
        /// True for a `when` or `race`.
        var isCombinator = false
        var wasCancelled = false
        /// True for a combinator that a cancellation rejects when its sources have ended.
        var isEnding = false
        /// The number of cancellations that have not reached all its sources yet.
        var cancellations = 0
        /// A cancellation does not continue from here, and rejects it after its source.
        var isShielding = false
        /// Its handler observes the outcome that has arrived before a cancellation, which then rejects it.
        var isOverruled = false
        /// True if it has left its source, in whose list its waiter may remain.
        var hasLeft = false
        /// Nothing holds it, and its waiters wait for the promise that it would have followed.
        var isGone = false

        init(origin: Int? = nil) { self.origin = origin }

        var root: Core { link?.root ?? self }
        var isOpen: Bool { settlement == nil && !isClaimed }
        var isWanted: Bool { isWanted(besides: nil) }
        func isWanted(besides waiter: Waiter?) -> Bool {
            waiters.contains { $0 !== waiter && !$0.isDone && !$0.isWatching }
        }
    }

    final class Waiter {
        let isInline: Bool
        /// Neither handles an error nor is a reason to continue.
        let isWatching: Bool
        /// The promise whose list it is in.
        var source: Core?
        /// True if it is about to receive a cancellation.
        var receivesCancellation = false
        /// It has run, or was withdrawn.
        var isDone = false
        /// The handler has run, and its promise waits for the returned one.
        var follower: Core?
        /// The promise that it settles, or its combinator.
        var owner: Core?
        /// Observes an outcome that a later cancellation does not replace.
        var isObserving = false
        /// A cancellation has come in the place of the outcome.
        var isCancelled = false
        /// Called with the settled promise.
        var run: (Core) -> Void

        init(_ promise: Core, isInline: Bool, isWatching: Bool, run: @escaping (Core) -> Void) {
            source = promise.root
            self.isInline = isInline
            self.isWatching = isWatching
            self.run = run
        }

        func end() {
            isDone = true
            run = { _ in }
        }
    }

    /// A promise as a program holds it.
    final class ProgramPromise {
        let core: Core

        init(_ core: Core) {
            self.core = core
            core.holders += 1
        }

        deinit { core.holders -= 1 }
    }

    /// The copies of a resolver.
    final class ProgramResolver {
        let core: Core
        var copies = 1
        init(_ core: Core) { self.core = core }
    }

    private var jobs: [() -> Void] = []
    private var inlineJobs: [() -> Void] = []
    private var isInline = false
    /// The promise during whose settlement an inline job runs.
    private var interrupted: Core?
    private var all: [Core] = []
    /// The number of the program's handlers that have neither run nor been dropped.
    private(set) var handlerCount = 0
    var onAbandoned: (Int) -> Void = { _ in }

    /// Breaks the cycles: promises, waiters and the model refer to each other.
    func end() {
        jobs = []
        inlineJobs = []
        for promise in all {
            promise.waiters = []
            promise.waits = []
            promise.link = nil
            promise.producer = nil
            promise.follows = nil
        }
        all = []
    }

    private func make(_ origin: Int? = nil) -> Core {
        all.append(Core(origin: origin))
        return all.last!
    }

    // MARK: The core

    @discardableResult
    private func wait(
        for promise: Core, inline isInline: Bool = false, watching isWatching: Bool = false,
        _ run: @escaping (Core) -> Void
    ) -> Waiter {
        let waiter = Waiter(promise, isInline: isInline, isWatching: isWatching, run: run)
        let promise = promise.root
        if promise.settlement == nil || promise.isSettling {
            promise.waiters.append(waiter)
        } else {
            deliver(waiter, promise)
        }
        return waiter
    }

    private func deliver(_ waiter: Waiter, _ source: Core) {
        waiter.source = nil
        // A waiter that has withdrawn handles nothing.
        if waiter.isDone { return }
        if !waiter.isWatching { source.isHandled = true }
        waiter.receivesCancellation = source.settlement!.outcome == .error(.cancelled)
        let job = {
            if waiter.isDone { return }
            // What the handler has captured is released when it has run.
            let run = waiter.run
            waiter.end()
            run(waiter.isCancelled ? self.cancelled : source)
        }
        guard waiter.isInline else { return jobs.append(job) }
        inlineJobs.append(job)
        if !isInline { runInlineJobs() }
    }

    private func settle(_ promise: Core, _ outcome: Outcome, _ origin: Int? = nil) {
        let promise = promise.root
        precondition(promise.settlement == nil)
        promise.settlement = (outcome, origin)
        promise.isSettling = true
        let outer = interrupted
        if !isInline { interrupted = promise }
        tellWaiters(of: promise)
        interrupted = outer
    }

    private func tellWaiters(of promise: Core) {
        while !promise.waiters.isEmpty { deliver(promise.waiters.removeFirst(), promise) }
        promise.isSettling = false
    }

    /// Settles with a handler's result, if that still counts.
    private func finish(_ promise: Core, _ outcome: Outcome, _ origin: Int? = nil) {
        let (outcome, origin) = promise.isOverruled ? (.error(.cancelled), nil) : (outcome, origin)
        if promise.isOpen && promise.root.settlement == nil { settle(promise, outcome, origin) }
    }

    private func finish(_ promise: Core, as source: Core) {
        finish(promise, source.settlement!.outcome, source.settlement!.origin)
    }

    private func follow(_ child: Core, _ returned: Core) {
        let (outer, inner) = (child.root, returned.root)
        guard child.isOpen else { return cancelUnlessWanted(inner) }
        var next: Core? = inner
        while let promise = next {
            if promise === outer { return settle(outer, .error(.returnedSelf)) }
            next = promise.settlement == nil ? promise.follows?.root : nil
        }
        if inner.settlement != nil {
            inner.isHandled = true
            finish(child, as: inner)
        } else if inner.waiters.isEmpty && inner.origin == nil && inner.holders == 0 {
            inner.link = outer
            outer.producer = inner.producer ?? inner
            outer.follows = inner.follows
        } else if let waiter = onlyFollower(of: outer), outer === child {
            outer.waiters = []
            outer.isGone = true
            waiter.follower!.root.follows = inner
            waiter.source = inner
            inner.isHandled = true
            inner.waiters.append(waiter)
        } else {
            outer.follows = inner
            child.waits = [wait(for: returned) { self.finish(child, as: $0) }]
            child.waits[0].follower = child
            child.waits[0].owner = child
        }
    }

    /// The waiter that waits to settle as a promise that nothing else will query.
    private func onlyFollower(of promise: Core) -> Waiter? {
        guard promise.holders == 0, !promise.hasLeft, promise.waiters.count == 1,
            promise.waiters[0].follower != nil, !promise.waiters[0].isDone
        else { return nil }
        return promise.waiters[0]
    }

    // MARK: Cancelling

    private enum Branch {
        case input(Waiter)
        case end(Core)
    }

    private func cancelUnlessWanted(_ promise: Core) {
        if !promise.isWanted && promise.settlement == nil { cancel(promise) }
    }

    private func cancel(_ start: Core) {
        var branches: [Branch] = []
        if start.isOpen && start.link == nil { climb(start, &branches) }
        while let branch = branches.popLast() {
            switch branch {
            case .input(let waiter): if !waiter.isDone { climb(over: waiter, from: start, &branches) }
            case .end(let combinator):
                combinator.cancellations -= 1
                endIfOver(combinator)
            }
        }

        func climb(over waiter: Waiter, from start: Core, _ branches: inout [Branch]) {
            // A cancelled promise rejects it.
            guard let source = waiter.source, !source.wasCancelled else { return }
            if !source.isOpen || source === start || source.isWanted(besides: waiter) { return leave(waiter) }
            climb(source, &branches)
        }

        func climb(_ promise: Core, _ branches: inout [Branch]) {
            if promise.origin != nil {
                promise.isClaimed = true
                promise.wasCancelled = true
                return settle(promise, .error(.cancelled), promise.origin)
            }
            let producer = promise.producer ?? promise
            if producer.isCombinator {
                producer.isEnding = true
                producer.cancellations += 1
                branches.append(.end(producer))
                for input in producer.waits.reversed() where !input.isDone { branches.append(.input(input)) }
                return
            }
            guard let wait = producer.waits.last(where: { !$0.isDone }) else {
                // Its handler is running.
                if producer.isOverruled { return }
                if producer !== promise { producer.isClaimed = true }
                return settle(promise, .error(.cancelled))
            }
            if producer.isShielding {
                wait.run = { _ in self.finish(producer, .error(.cancelled)) }
            } else if wait.source == nil {
                if wait.receivesCancellation { return }
                if wait.isObserving { producer.isOverruled = true } else { wait.isCancelled = true }
            } else {
                climb(over: wait, from: start, &branches)
            }
        }
    }

    /// Receives the cancellation in place of the source's outcome. A combinator only counts.
    private func leave(_ waiter: Waiter) {
        guard let owner = waiter.owner, let source = waiter.source else { return }
        let run = waiter.run
        waiter.end()
        if owner.isCombinator { return endIfOver(owner) }
        waiter.follower?.root.follows = nil
        owner.hasLeft = true
        let other = Waiter(source, isInline: false, isWatching: false, run: run)
        other.owner = owner
        owner.waits = [other]
        deliver(other, cancelled)
    }

    /// Rejects a cancelled combinator when its last source has ended.
    private func endIfOver(_ combinator: Core) {
        guard combinator.cancellations == 0, combinator.waits.allSatisfy({ $0.isDone }) else { return }
        finish(combinator, .error(.cancelled))
    }

    private lazy var cancelled: Core = {
        let promise = make()
        settle(promise, .error(.cancelled))
        return promise
    }()

    func onCancel(_ resolver: ProgramResolver, _ body: @escaping () -> Void) {
        let token = HandlerToken(self)
        wait(for: resolver.core, watching: true) { if $0.wasCancelled { token.use(body) } }
    }

    /// Captured by a handler of the program.
    private final class HandlerToken {
        private unowned let model: ModelPromises

        init(_ model: ModelPromises) {
            self.model = model
            model.handlerCount += 1
        }

        deinit { model.handlerCount -= 1 }

        func use<Result>(_ body: () -> Result) -> Result { body() }
    }

    // MARK: The loop

    /// Inline jobs run one after the other, never one inside another.
    private func runInlineJobs() {
        isInline = true
        while !inlineJobs.isEmpty { inlineJobs.removeFirst()() }
        isInline = false
    }

    func turn() {
        let wasInline = isInline
        if wasInline {
            if let promise = interrupted {
                interrupted = nil
                tellWaiters(of: promise)
            }
            runInlineJobs()
        }
        while !jobs.isEmpty { jobs.removeFirst()() }
        isInline = wasInline
    }

    // MARK: Making and resolving

    func pending(_ name: Int) -> (ProgramPromise, ProgramResolver) {
        let promise = make(name)
        return (ProgramPromise(promise), ProgramResolver(promise))
    }

    func settled(_ outcome: Outcome, _ name: Int) -> ProgramPromise {
        let promise = make()
        settle(promise, outcome, name)
        return ProgramPromise(promise)
    }

    func settle(_ resolver: ProgramResolver, _ outcome: Outcome) {
        guard !resolver.core.isClaimed else { return }
        resolver.core.isClaimed = true
        settle(resolver.core, outcome, resolver.core.origin)
    }

    func copy(_ resolver: ProgramResolver) -> ProgramResolver {
        resolver.copies += 1
        return resolver
    }

    func drop(_ resolver: ProgramResolver) {
        resolver.copies -= 1
        guard resolver.copies == 0 && !resolver.core.isClaimed else { return }
        onAbandoned(resolver.core.origin!)
        settle(resolver, .error(.abandoned))
    }

    func drop(_ promise: consuming ProgramPromise) {}

    func result(_ promise: ProgramPromise) -> Outcome? {
        guard let outcome = promise.core.settlement?.outcome else { return nil }
        promise.core.isHandled = true
        return outcome
    }

    func state(_ promise: ProgramPromise) -> String { promise.core.settlement?.outcome.description ?? "pending" }

    func cancel(_ promise: ProgramPromise) { cancel(promise.core) }

    // MARK: Operators

    func attach(_ op: Operator, to source: ProgramPromise, _ body: @escaping (Outcome) -> Answer<ProgramPromise>)
        -> ProgramPromise?
    {
        let token = HandlerToken(self)
        let child = attach(op, to: source.core) { outcome -> Answer<Core> in
            switch token.use({ body(outcome) }) {
            case .value(let number): .value(number)
            case .failure(let number): .failure(number)
            case .promise(let promise): .promise(promise.core)
            }
        }
        return child.map(ProgramPromise.init)
    }

    private func attach(_ op: Operator, to source: Core, _ body: @escaping (Outcome) -> Answer<Core>) -> Core? {
        let child = make()
        let waiter = wait(for: source, inline: op == .pipe) { source in
            let outcome = source.settlement!.outcome
            guard op.handles(outcome) else { return self.finish(child, as: source) }
            switch (op, body(op.tellsOutcome ? outcome : .value(0))) {
            case (.tap, _), (.ensure, _), (.catch, _), (.pipe, _): self.finish(child, as: source)
            case (.ensureThen, let answer):
                // The outcome is held until the cleanup has ended in any way.
                let held = self.make()
                held.isShielding = true
                let cleanup = if case .promise(let inner) = answer { inner } else { self.settled(.value(0)) }
                let guarantee = self.attach(.map, to: cleanup) { _ in .value(0) }!
                let end = self.attach(.guarantee, to: guarantee) { _ in .value(0) }!
                held.waits = [self.wait(for: end) { _ in self.finish(held, as: source) }]
                held.waits[0].owner = held
                self.follow(child, held)
            case (.get, .value): self.finish(child, as: source)
            case (_, .value(let number)): self.finish(child, .value(number))
            case (.recover, .failure(let number)), (.recoverAll, .failure(let number)):
                // Another error in the place of the first, with its call site.
                self.finish(child, .error(.flaw(number)), source.settlement!.origin)
            case (_, .failure(let number)): self.finish(child, .error(.flaw(number)))
            case (_, .promise(let inner)): self.follow(child, inner)
            }
        }
        if child.waits.isEmpty {
            child.waits = [waiter]
            waiter.owner = child
            waiter.isObserving = op == .tap
        }
        if !op.makesPromise { child.isHandled = true }
        return op.makesPromise ? child : nil
    }

    private func settled(_ outcome: Outcome) -> Core {
        let promise = make()
        settle(promise, outcome)
        return promise
    }

    func combine(_ combinator: Combinator, _ sources: [ProgramPromise]) -> ProgramPromise {
        ProgramPromise(combine(combinator, sources.map(\.core)))
    }

    private func combine(_ combinator: Combinator, _ sources: [Core]) -> Core {
        let result = make()
        var left = sources.count
        var sum = 0
        if sources.isEmpty { settle(result, combinator.isRace ? .error(.badInput) : .value(0)) }
        var isComplete = false
        var areCancelled = true
        combine(sources, in: result) { source in
            guard result.isOpen && result.root.settlement == nil else { return }
            left -= 1
            switch (combinator, source.settlement!.outcome) {
            case (.all, .value(let number)), (.each, .value(let number)): sum += number
            case (.each, .error): sum += 1
            case (.raceFulfilled, .error(let fault)):
                areCancelled = areCancelled && fault == .cancelled
                if left == 0 { self.finish(result, .error(areCancelled ? .cancelled : .noWinner)) }
                return
            case (.race, _), (.raceFulfilled, _), (.all, .error):
                self.finish(result, as: source)
                if isComplete { self.leaveRest(of: result, combinator) }
                return
            }
            if left == 0 { self.finish(result, .value(sum)) }
        }
        isComplete = true
        if result.settlement != nil && result.waits.contains(where: { !$0.isDone }) {
            // The losers of a race by a job, so that the caller can still attach handlers to them.
            let leave = { self.leaveRest(of: result, combinator) }
            if combinator.isRace { jobs.append(leave) } else { leave() }
        }
        if combinator.isRace { return result }
        return attach(.map, to: result) { _ in .value(sum) }!
    }

    /// A race cancels its losers; what a `when` leaves goes on.
    private func leaveRest(of result: Core, _ combinator: Combinator) {
        for waiter in result.waits where !waiter.isDone {
            waiter.end()
            guard let source = waiter.source else { continue }
            if combinator.isRace { cancelUnlessWanted(source) } else { source.isHandled = true }
        }
    }

    private func combine(_ sources: [Core], in result: Core, _ run: @escaping (Core) -> Void) {
        result.isCombinator = true
        for source in sources {
            if source.root.settlement != nil {
                source.isHandled = true
                run(source.root)
            } else {
                result.waits.append(
                    wait(for: source, inline: true) { result.isEnding ? self.endIfOver(result) : run($0) })
                result.waits.last!.owner = result
            }
        }
    }

    /// The errors that no handler has received, with the promises that were rejected first.
    var unhandled: [Rejection] {
        all.compactMap { promise in
            guard promise.link == nil, !promise.isHandled, let (outcome, origin) = promise.settlement,
                case .error(let fault) = outcome, fault != .abandoned, fault != .cancelled
            else { return nil }
            return Rejection(fault: fault, origin: origin)
        }
    }

    /// True if something waits for itself: only then can a promise be pending when all resolvers are gone.
    var hasPending: Bool { all.contains { $0.root.settlement == nil && !$0.isGone } }
}

/// The report of an unhandled rejection.
struct Rejection: Hashable, CustomStringConvertible {
    let fault: Fault
    let origin: Int?

    var description: String { "\(fault)" + (origin.map { " of p\($0)" } ?? "") }
}
