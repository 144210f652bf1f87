/// What the promises of one loop should do, as plainly as it can be said: a promise is an outcome and a list of
/// waiters, the loop is a list of jobs.
final class ReferenceModel: Machine {
    final class Promise {
        let origin: Int?
        /// How it has settled, and the origin of the error.
        var settlement: (outcome: Outcome, origin: Int?)?
        var waiters: [Waiter] = []
        /// Waiters are being sent on their way; those that come now go behind them.
        var isSettling = false
        /// A resolver has won.
        var isClaimed = false
        /// Somebody waits or has waited for it, or has looked.
        var isTold = false
        /// A handler returned this promise, and it has become one with the one of that handler.
        var link: Promise?
        /// A handler returned that promise, and this one waits to settle likewise.
        var follows: Promise?

        init(origin: Int? = nil) { self.origin = origin }

        var root: Promise { link?.root ?? self }
    }

    struct Waiter {
        let isInline: Bool
        /// With the promise that has settled.
        let run: (Promise) -> Void
    }

    /// The copies of a resolver.
    final class Token {
        let promise: Promise
        var copies = 1
        init(_ promise: Promise) { self.promise = promise }
    }

    private var jobs: [() -> Void] = []
    private var inlineJobs: [() -> Void] = []
    private var isInline = false
    private var all: [Promise] = []
    var onAbandoned: (Int) -> Void = { _ in }

    private func make(_ origin: Int? = nil) -> Promise {
        all.append(Promise(origin: origin))
        return all.last!
    }

    // MARK: The core

    private func wait(for promise: Promise, inline isInline: Bool = false, _ run: @escaping (Promise) -> Void) {
        let promise = promise.root
        promise.isTold = true
        let waiter = Waiter(isInline: isInline, run: run)
        if promise.settlement == nil || promise.isSettling {
            promise.waiters.append(waiter)
        } else {
            deliver(waiter, promise)
        }
    }

    private func deliver(_ waiter: Waiter, _ source: Promise) {
        guard waiter.isInline else { return jobs.append { waiter.run(source) } }
        inlineJobs.append { waiter.run(source) }
        if !isInline { runInlineJobs() }
    }

    private func settle(_ promise: Promise, _ outcome: Outcome, _ origin: Int? = nil) {
        let promise = promise.root
        precondition(promise.settlement == nil)
        promise.settlement = (outcome, origin)
        promise.isSettling = true
        while !promise.waiters.isEmpty { deliver(promise.waiters.removeFirst(), promise) }
        promise.isSettling = false
    }

    private func settle(_ promise: Promise, as source: Promise) {
        settle(promise, source.settlement!.outcome, source.settlement!.origin)
    }

    private func follow(_ outer: Promise, _ inner: Promise) {
        let (outer, inner) = (outer.root, inner.root)
        var next: Promise? = inner
        while let promise = next {
            if promise === outer { return settle(outer, .error(.returnedSelf)) }
            next = promise.follows?.root
        }
        if inner.settlement != nil {
            inner.isTold = true
            settle(outer, as: inner)
        } else if inner.waiters.isEmpty {
            inner.link = outer
            outer.follows = inner.follows
        } else {
            outer.follows = inner
            wait(for: inner) { self.settle(outer, as: $0) }
        }
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
        if wasInline { runInlineJobs() }
        while !jobs.isEmpty { jobs.removeFirst()() }
        isInline = wasInline
    }

    // MARK: Making and resolving

    func pending(_ name: Int) -> (Promise, Token) {
        let promise = make(name)
        return (promise, Token(promise))
    }

    func settled(_ outcome: Outcome, _ name: Int) -> Promise {
        let promise = make(name)
        settle(promise, outcome, name)
        return promise
    }

    func settle(_ token: Token, _ outcome: Outcome) {
        guard !token.promise.isClaimed else { return }
        token.promise.isClaimed = true
        settle(token.promise, outcome, token.promise.origin)
    }

    func copy(_ token: Token) -> Token {
        token.copies += 1
        return token
    }

    func drop(_ token: Token) {
        token.copies -= 1
        guard token.copies == 0 && !token.promise.isClaimed else { return }
        onAbandoned(token.promise.origin!)
        settle(token, .error(.abandoned))
    }

    /// Nothing depends on who holds a promise.
    func drop(_ promise: Promise) {}

    func look(_ promise: Promise) -> Outcome? {
        guard let outcome = promise.root.settlement?.outcome else { return nil }
        promise.root.isTold = true
        return outcome
    }

    func peek(_ promise: Promise) -> String { promise.root.settlement?.outcome.description ?? "pending" }

    // MARK: Operators

    func attach(_ op: Operator, to source: Promise, _ body: @escaping (Outcome) -> Answer<Promise>) -> Promise? {
        let child = make()
        wait(for: source, inline: op == .pipe) { source in
            let outcome = source.settlement!.outcome
            guard op.handles(outcome) else { return self.settle(child, as: source) }
            switch (op, body(op.tellsOutcome ? outcome : .value(0))) {
            case (.tap, _), (.ensure, _), (.catch, _), (.pipe, _): self.settle(child, as: source)
            case (.ensureThen, let answer):
                // The outcome is held until the cleanup has ended, whichever way.
                let held = self.make()
                let cleanup = if case .promise(let inner) = answer { inner } else { self.settled(.value(0), 0) }
                let guarantee = self.attach(.map, to: cleanup) { _ in .value(0) }!
                let end = self.attach(.guarantee, to: guarantee) { _ in .value(0) }!
                self.wait(for: end) { _ in self.settle(held, as: source) }
                self.follow(child, held)
            case (.get, .value): self.settle(child, as: source)
            case (_, .value(let number)): self.settle(child, .value(number))
            case (_, .failure(let number)): self.settle(child, .error(.flaw(number)))
            case (_, .promise(let inner)): self.follow(child, inner)
            }
        }
        if !op.makesPromise { child.isTold = true }
        return op.makesPromise ? child : nil
    }

    func when(_ sources: [Promise]) -> Promise {
        let result = make()
        var left = sources.count
        var sum = 0
        if sources.isEmpty { settle(result, .value(0)) }
        for source in sources {
            wait(for: source, inline: true) { source in
                guard case .value(let number) = source.settlement!.outcome else {
                    if result.root.settlement == nil { self.settle(result, as: source) }
                    return
                }
                left -= 1
                sum += number
                if left == 0 { self.settle(result, .value(sum)) }
            }
        }
        return attach(.map, to: result) { _ in .value(sum) }!
    }

    func race(_ sources: [Promise]) -> Promise {
        let result = make()
        if sources.isEmpty { settle(result, .error(.badInput)) }
        for source in sources {
            wait(for: source, inline: true) { source in
                if result.root.settlement == nil { self.settle(result, as: source) }
            }
        }
        return result
    }

    func cancel(_ promise: Promise) {}

    func onCancel(_ token: Token, _ body: @escaping () -> Void) {}

    /// The errors that nobody has been told of, with the promises that were rejected first.
    var unhandled: [Rejection] {
        all.compactMap { promise in
            guard promise.link == nil, !promise.isTold, let (outcome, origin) = promise.settlement,
                case .error(let fault) = outcome, fault != .abandoned, fault != .cancelled
            else { return nil }
            return Rejection(fault: fault, origin: origin)
        }
    }

    /// Whether something waits for itself: only then can a promise be pending when all resolvers are gone.
    var hasPending: Bool { all.contains { $0.root.settlement == nil } }
}

/// What is reported of a rejection that nobody was told of.
struct Rejection: Hashable, CustomStringConvertible {
    let fault: Fault
    let origin: Int?

    var description: String { "\(fault)" + (origin.map { " of p\($0)" } ?? "") }
}
