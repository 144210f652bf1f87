// The reference: the possible ends of an expression of the operator storm, without a promise.

extension StormPlan {
    /// - Parameter shared: the possible ends of the promises that the expression takes from others.
    func possible(_ shared: [OutcomeSet]) -> OutcomeSet {
        switch self {
        case .leaf(let leaf): leaf.possible(shared)
        case .unary(let unary, let source): unary.possible(after: source.possible(shared), shared)
        case .gather(let gather, let sources): gather.possible(of: sources.map { $0.possible(shared) })
        }
    }
}

extension StormPlan.Leaf {
    func possible(_ shared: [OutcomeSet]) -> OutcomeSet {
        switch self {
        case .settled(let outcome), .resolved(let outcome, _), .asyncBody(let outcome), .dispatched(let outcome, _),
            .thenable(let outcome):
            OutcomeSet(outcome)
        case .guaranteed(let value), .timer(let value): OutcomeSet(.value(value))
        case .abandoned: OutcomeSet(.abandoned)
        case .endless: OutcomeSet(.timedOut)
        case .onlyCancelled: OutcomeSet(.cancelled)
        case .shared(let index): shared[index]
        }
    }
}

extension StormPlan.Unary {
    func possible(after source: OutcomeSet, _ shared: [OutcomeSet]) -> OutcomeSet {
        func sum(_ number: Int) -> OutcomeSet { source.mappedValues { OutcomeSet(.value(($0 + number) & 15)) } }
        switch self {
        case .map(let number), .asVoid(let number), .mapOn(_, let number), .thenOn(_, let number): return sum(number)
        case .throwing(let number):
            return source.mappedValues { OutcomeSet($0 & 1 == 1 ? .flaw(number) : .value($0)) }
        case .compactMap(let number):
            return source.mappedValues { OutcomeSet($0 == number ? .missing : .value($0)) }
        case .get, .tap, .tapError, .ensure, .finally, .done, .catchAll, .pipe, .named, .ensureThen, .delay,
            .longTimeout,
            .tapOn, .catchOn, .retry, .awaited:
            return source
        case .values(let number):
            // The two values, sorted, without the lowest.
            return source.mappedValues { OutcomeSet(.value(max($0, number))) }
        case .recover(let number), .recoverOn(_, let number): return source.recovered(OutcomeSet(.value(number)))
        case .recoverAll(let number), .recoverAlways(let number):
            return source.recovered(where: { _ in true }, OutcomeSet(.value(number)))
        case .recoverType(let number): return source.recovered(where: { $0.isFlaw }, OutcomeSet(.value(number)))
        case .recoverValue(let number):
            return source.recovered(where: { $0 == .flaw(number) }, OutcomeSet(.value(number)))
        case .shortTimeout: return source | .timedOut
        case .cancelled: return source | .cancelled
        case .then(let inner): return source.afterEachValue(inner.possible(shared)) { source.sums(with: $0) }
        case .thenReduce(let inner), .thenMap(let inner):
            // Of the elements 0 and the value.
            return source.afterEachValue(inner.possible(shared)) { source.sums(with: $0).sums(with: $0) }
        case .forEach(let inner):
            return source.afterEachValue(inner.possible(shared)) { _ in
                source.values.reduce(OutcomeSet()) { $0 | .value($1) }
            }
        case .hung(let leaf): return source.afterEachValue(leaf.possible(shared)) { source.sums(with: $0) }
        }
    }
}

extension StormOutcome {
    var isFlaw: Bool { if case .flaw = self { true } else { false } }
}

extension OutcomeSet {
    /// For each value the results of `inner`: its errors, and `combine` applied to its values.
    fileprivate func afterEachValue(_ inner: OutcomeSet, _ combine: (OutcomeSet) -> OutcomeSet) -> OutcomeSet {
        if values.isEmpty { return self }
        return inner.values.isEmpty ? errors | inner.errors : errors | inner.errors | combine(inner)
    }

    fileprivate var onlyValues: OutcomeSet { values.reduce(OutcomeSet()) { $0 | .value($1) } }
    /// The result of `recoverAlways(0)`.
    fileprivate var guaranteed: OutcomeSet { hasError ? onlyValues | .value(0) : onlyValues }
}

extension StormPlan.Gather {
    func possible(of sources: [OutcomeSet]) -> OutcomeSet {
        let zero = OutcomeSet(.value(0))
        switch self {
        case .when, .whenTuple, .whenMixed, .whenConcurrently:
            let sums = sources.reduce(zero) { $0.sums(with: $1) }
            return sources.reduce(sums) { $0 | $1.errors }
        case .whenResolved, .whenGuarantees:
            return sources.reduce(zero) { $0.sums(with: $1.guaranteed) }
        case .forEach: return sources.reduce(OutcomeSet(.value(sources.count))) { $0 | $1.errors }
        case .race: return sources.reduce(OutcomeSet(), |)
        case .raceWithEndless: return sources.reduce(OutcomeSet(), |)
        case .raceFulfilled:
            let values = sources.reduce(OutcomeSet()) { $0 | $1.onlyValues }
            return sources.allSatisfy(\.hasError) ? values | .noWinner | .cancelled : values
        case .raceGuarantees: return sources.reduce(OutcomeSet()) { $0 | $1.guaranteed }
        }
    }
}
