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
        /// It has or had a waiter, or its outcome was read.
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
        /// Its handler runs in any case, even when it is cancelled.
        var cleansUp = false
        /// Set when that has happened: another cancellation adds nothing.
        var isEndingCancelled = false
        /// Its handler was going to run, since the source had settled: it runs with that outcome, and then the promise
        /// is rejected.
        var isCancelledLate = false
        /// A cancellation does not continue from here.
        var isShielding = false
        /// Nothing holds it, and its waiters wait for the promise that it would have followed.
        var isGone = false

        init(origin: Int? = nil) { self.origin = origin }

        var root: Core { link?.root ?? self }
        var isOpen: Bool { settlement == nil && !isClaimed }
        var isWanted: Bool { isWanted(besides: nil) }
        func isWanted(besides waiter: Waiter?) -> Bool {
            waiters.contains { $0 !== waiter && !$0.isDone && !$0.isWatching }
        }
        /// A cancellation has reached it, and it settles later.
        var isEndingLater: Bool {
            root.settlement == nil && (root.origin == nil ? (root.producer ?? root).isEndingCancelled : !root.isOpen)
        }
    }

    final class Waiter {
        let isInline: Bool
        /// Neither handles an error nor is a reason to continue.
        let isWatching: Bool
        /// The promise whose list it is in.
        var source: Core?
        /// It has run, or was withdrawn.
        var isDone = false
        /// The handler has run, and its promise waits for the returned one.
        var follower: Core?
        var isFollowing: Bool { follower != nil }
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
        if !isWatching { promise.isHandled = true }
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
        let job = {
            if waiter.isDone { return }
            // What the handler has captured is released when it has run.
            let run = waiter.run
            waiter.end()
            run(source)
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
        let outcome = promise.isCancelledLate ? .error(.cancelled) : outcome
        if promise.isOpen && promise.root.settlement == nil { settle(promise, outcome, origin) }
    }

    private func finish(_ promise: Core, as source: Core) {
        finish(promise, source.settlement!.outcome, source.settlement!.origin)
    }

    private func follow(_ child: Core, _ returned: Core) {
        let (outer, inner) = (child.root, returned.root)
        guard child.isOpen else { return climb(inner, evenIfWanted: false) }
        var next: Core? = inner
        while let promise = next {
            if promise === outer { return settle(outer, .error(.returnedSelf)) }
            // A cancelled promise follows no other any more.
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
        }
    }

    /// The waiter that waits to settle as a promise that nothing else will query.
    private func onlyFollower(of promise: Core) -> Waiter? {
        guard promise.holders == 0, !promise.isEndingCancelled, promise.waiters.count == 1,
            let follower = promise.waiters[0].follower, !promise.waiters[0].isDone, !follower.isEndingCancelled
        else { return nil }
        return promise.waiters[0]
    }

    // MARK: Cancelling

    private func climb(_ promise: Core, evenIfWanted: Bool) {
        var left = countBehindCleanUps(promise, evenIfWanted: evenIfWanted)
        var topmost: (() -> Void)?
        // Known before any of them settles: that may fail a `when`, which then leaves one further up.
        let height = measure(promise, besides: nil, evenIfWanted: evenIfWanted, startedAt: nil).height
        cancel(promise, height, evenIfWanted: evenIfWanted, &left, &topmost)
        if let topmost { jobs.append(topmost) }
    }

    /// The number of promises, from this one upwards, that a cancellation does not settle at once.
    private func countBehindCleanUps(_ first: Core, evenIfWanted: Bool) -> Int {
        let chain = measure(first, besides: nil, evenIfWanted: evenIfWanted, startedAt: nil)
        var inputs = chain.combinator?.waits ?? []
        while let input = inputs.popLast() {
            guard !input.isDone, let source = input.source else { continue }
            let above = measure(source, besides: input, evenIfWanted: false, startedAt: first)
            if above.count > 0 { return chain.height }
            inputs += above.combinator?.waits ?? []
        }
        return chain.count
    }

    private func measure(
        _ first: Core, besides waiter: Waiter?, evenIfWanted: Bool, startedAt start: Core?
    ) -> (count: Int, height: Int, combinator: Core?) {
        var (promise, waiter, evenIfWanted) = (first, waiter, evenIfWanted)
        var (count, height) = (0, 0)
        while promise !== (height == 0 ? start : start ?? first), promise.link == nil, promise.isOpen,
            evenIfWanted || !promise.isWanted(besides: waiter)
        {
            height += 1
            let producer = promise.producer ?? promise
            if promise.origin != nil { break }
            if producer.isEndingCancelled { return (height, height, nil) }
            if producer.isCombinator { return (count, height, producer) }
            guard let wait = producer.waits.last(where: { !$0.isDone }) else { break }
            if producer.isShielding { return (wait.source != nil ? height : count, height, nil) }
            if producer.cleansUp && !wait.isFollowing { count = height }
            guard let source = wait.source else { break }
            (promise, waiter, evenIfWanted) = (source, wait, false)
        }
        return (count, height, nil)
    }

    /// The combinator settles when those of its sources have settled that do not settle at once.
    private func cancelLater(_ combinator: Core) {
        combinator.isEndingCancelled = true
        var sources: [Core] = []
        for waiter in combinator.waits where !waiter.isDone {
            waiter.end()
            guard let source = waiter.source else { continue }
            sources.append(source)
            enqueueCancel(source)
        }
        inlineJobs.append {
            var count = 1
            let end = {
                count -= 1
                if count == 0 { self.finish(combinator, .error(.cancelled)) }
            }
            for source in sources where source.isEndingLater {
                count += 1
                self.wait(for: source, watching: true) { _ in end() }
            }
            end()
        }
        if !isInline { runInlineJobs() }
    }

    private func cancel(
        _ promise: Core, _ height: Int, evenIfWanted: Bool, _ left: inout Int, _ topmost: inout (() -> Void)?
    ) {
        guard height > 0, promise.isOpen, evenIfWanted || !promise.isWanted else { return }
        let (isLast, isBehind) = (left == 1, left > 1)
        left = max(left - 1, 0)
        if promise.origin != nil {
            promise.isClaimed = true
            promise.wasCancelled = true
            return settle(promise, .error(.cancelled), promise.origin)
        }
        let producer = promise.producer ?? promise
        if producer.isEndingCancelled { return }
        if producer.isCombinator && isLast { return cancelLater(producer) }
        var source: Core?
        var isOver = true
        for waiter in producer.waits where !waiter.isDone {
            source = waiter.source
            if producer.isShielding && source != nil {
                producer.isEndingCancelled = true
                waiter.run = { _ in self.finish(producer, .error(.cancelled)) }
                return
            }
            if producer.cleansUp && !waiter.isFollowing {
                isOver = false
                producer.isEndingCancelled = true
                producer.isCancelledLate = source == nil
                guard source != nil else { continue }
                let handler = waiter.run
                waiter.end()
                let run = { handler(self.cancelled) }
                if isBehind { wait(for: source!, watching: true) { _ in run() } } else { topmost = run }
            } else if isBehind, let source {
                isOver = false
                producer.isEndingCancelled = true
                waiter.end()
                wait(for: source, watching: true) { _ in self.finish(producer, .error(.cancelled)) }
            } else {
                waiter.end()
                if producer.isCombinator, let source { enqueueCancel(source) }
            }
        }
        if isOver && producer !== promise { producer.isClaimed = true }
        if isOver && promise.isOpen { settle(promise, .error(.cancelled)) }
        if !producer.isCombinator, let source {
            cancel(source, height - 1, evenIfWanted: false, &left, &topmost)
        }
    }

    /// One of several, after the inline jobs in progress.
    private func enqueueCancel(_ source: Core) {
        inlineJobs.append { self.climb(source, evenIfWanted: false) }
        if !isInline { runInlineJobs() }
    }

    private lazy var cancelled: Core = {
        let promise = make()
        settle(promise, .error(.cancelled))
        return promise
    }()

    func onCancel(_ resolver: ProgramResolver, _ body: @escaping () -> Void) {
        wait(for: resolver.core, watching: true) { if $0.wasCancelled { body() } }
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

    func cancel(_ promise: ProgramPromise) { climb(promise.core, evenIfWanted: true) }

    // MARK: Operators

    func attach(_ op: Operator, to source: ProgramPromise, _ body: @escaping (Outcome) -> Answer<ProgramPromise>)
        -> ProgramPromise?
    {
        let child = attach(op, to: source.core) { outcome -> Answer<Core> in
            switch body(outcome) {
            case .value(let number): .value(number)
            case .failure(let number): .failure(number)
            case .promise(let promise): .promise(promise.core)
            }
        }
        return child.map(ProgramPromise.init)
    }

    private func attach(_ op: Operator, to source: Core, _ body: @escaping (Outcome) -> Answer<Core>) -> Core? {
        let child = make()
        child.cleansUp = [.tap, .ensure, .ensureThen].contains(op)
        let waiter = wait(for: source, inline: op == .pipe) { source in
            let outcome = source.settlement!.outcome
            guard op.handles(outcome) else { return self.finish(child, as: source) }
            switch (op, body(op.tellsOutcome ? outcome : .value(0))) {
            case (.tap, _), (.ensure, _), (.catch, _), (.pipe, _): self.finish(child, as: source)
            case (.ensureThen, let answer):
                // The outcome is held until the cleanup has ended in any way.
                let held = self.make()
                held.isShielding = true
                held.isEndingCancelled = child.isEndingCancelled && !child.isCancelledLate
                let cleanup = if case .promise(let inner) = answer { inner } else { self.settled(.value(0)) }
                let guarantee = self.attach(.map, to: cleanup) { _ in .value(0) }!
                let end = self.attach(.guarantee, to: guarantee) { _ in .value(0) }!
                held.waits = [self.wait(for: end) { _ in self.finish(held, as: source) }]
                if child.isCancelledLate {
                    child.waits = [self.wait(for: held) { _ in self.finish(child, .error(.cancelled)) }]
                    child.waits[0].follower = child
                } else {
                    self.follow(child, held)
                }
            case (.get, .value): self.finish(child, as: source)
            case (_, .value(let number)): self.finish(child, .value(number))
            case (.recover, .failure(let number)), (.recoverAll, .failure(let number)):
                // Another error in the place of the first, with its call site.
                self.finish(child, .error(.flaw(number)), source.settlement!.origin)
            case (_, .failure(let number)): self.finish(child, .error(.flaw(number)))
            case (_, .promise(let inner)): self.follow(child, inner)
            }
        }
        if child.waits.isEmpty { child.waits = [waiter] }
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
            if combinator.isRace, let source = waiter.source { climb(source, evenIfWanted: false) }
        }
    }

    private func combine(_ sources: [Core], in result: Core, _ run: @escaping (Core) -> Void) {
        result.isCombinator = true
        for source in sources {
            if source.root.settlement != nil {
                source.isHandled = true
                run(source.root)
            } else {
                result.waits.append(wait(for: source, inline: true, run))
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
