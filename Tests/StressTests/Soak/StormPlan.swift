@testable import PromisesTestSupport

/// A random expression over promises: the operator storm builds it from the library's operators, and `possible` returns
/// its possible ends.
indirect enum StormPlan {
    case leaf(Leaf)
    case unary(Unary, StormPlan)
    case gather(Gather, [StormPlan])

    /// A thread, or its equivalent, on which something is done to a promise.
    enum Place: Equatable {
        case now, here, loop(Int), pool, thread, task
    }

    enum Leaf {
        case settled(StormOutcome)
        case guaranteed(Int)
        /// By a resolver, at that place.
        case resolved(StormOutcome, Place)
        case abandoned(Place)
        case timer(Int)
        case asyncBody(StormOutcome)
        case dispatched(StormOutcome, Place)
        case thenable(StormOutcome)
        /// A promise that nothing settles, with a time limit.
        case endless
        /// A promise that only a cancellation ends, in one of several forms, cancelled at one place or at two.
        case onlyCancelled(StormForm, Place, Place?)
        /// The promise of another expression, perhaps of another loop.
        case shared(Int)
    }

    enum Unary {
        // A number is a summand, a selected value, or the number of an error.
        case map(Int), throwing(Int), compactMap(Int)
        case get, tap, tapError, ensure, finally, done, catchAll, pipe, named, asVoid(Int)
        case recover(Int), recoverAll(Int), recoverAlways(Int), recoverType(Int), recoverValue(Int)
        case ensureThen, delay, longTimeout, shortTimeout, cancelled(Place)
        case mapOn(Place?, Int), thenOn(Place?, Int), recoverOn(Place?, Int), tapOn(Place?), catchOn(Place?)
        case then(StormPlan), thenMap(StormPlan), thenReduce(StormPlan), forEach(StormPlan)
        case retry, awaited, hung(Leaf), values(Int)
    }

    enum Gather: CaseIterable {
        case when, whenTuple, whenMixed, whenResolved, whenConcurrently
        case whenGuarantees, forEach, race, raceFulfilled, raceGuarantees, raceWithEndless
    }
}

extension StormPlan {
    static func random(_ dice: inout SplitMix64, depth: Int) -> StormPlan {
        if depth == 0 || dice.once(in: 8) { return .leaf(Leaf.random(&dice)) }
        if dice.below(10) < 7 { return .unary(Unary.random(&dice, depth: depth), random(&dice, depth: depth - 1)) }
        let kind = dice.pick(Gather.allCases)
        let count = kind == .whenTuple ? 2 : 1 + dice.below(3)
        return .gather(kind, (0..<count).map { _ in random(&dice, depth: depth - 1) })
    }
}

extension StormOutcome {
    fileprivate static func random(_ dice: inout SplitMix64) -> StormOutcome {
        dice.once(in: 4) ? .flaw(dice.below(8)) : .value(dice.below(16))
    }
}

extension StormPlan.Place {
    static func random(_ dice: inout SplitMix64) -> StormPlan.Place {
        dice.pick([.now, .here, .loop(0), .loop(1), .pool, .thread, .task])
    }

    /// The target of a dispatcher; nil: where the promise is settled.
    static func randomDispatcher(_ dice: inout SplitMix64) -> StormPlan.Place? {
        dice.pick([nil, .loop(0), .loop(1), .pool])
    }
}

extension StormPlan.Leaf {
    static func random(_ dice: inout SplitMix64) -> StormPlan.Leaf {
        switch dice.below(20) {
        case 0: .settled(.random(&dice))
        case 1: .guaranteed(dice.below(16))
        case 2...6: .resolved(.random(&dice), .random(&dice))
        case 7: .abandoned(.random(&dice))
        case 8: .timer(dice.below(16))
        case 9: .asyncBody(.random(&dice))
        case 10...12: .dispatched(.random(&dice), dice.pick([.loop(0), .loop(1), .pool]))
        case 13: .thenable(.random(&dice))
        case 14: .endless
        case 15...18:
            .onlyCancelled(dice.pick(StormForm.allCases), .random(&dice), dice.once(in: 3) ? .random(&dice) : nil)
        default: .shared(dice.below(StormExchange.size))
        }
    }
}

extension StormPlan.Unary {
    static func random(_ dice: inout SplitMix64, depth: Int) -> StormPlan.Unary {
        let number = dice.below(8)
        let place = StormPlan.Place.randomDispatcher(&dice)
        func inner(_ dice: inout SplitMix64) -> StormPlan { .random(&dice, depth: max(depth - 2, 0)) }
        switch dice.below(42) {
        case 0, 1: return .map(number)
        case 2, 3: return .throwing(number)
        case 4: return .compactMap(number)
        case 5: return .get
        case 6: return .tap
        case 7: return .tapError
        case 8: return .ensure
        case 9: return .finally
        case 10: return .done
        case 11: return .catchAll
        case 12: return .pipe
        case 13: return .named
        case 14: return .asVoid(number)
        case 15: return .recover(number)
        case 16: return .recoverAll(number)
        case 17: return .recoverAlways(number)
        case 18: return .recoverType(number)
        case 19, 20: return .recoverValue(number)
        case 21: return .ensureThen
        case 22: return .delay
        case 23: return .longTimeout
        case 24: return .shortTimeout
        case 25, 26: return .cancelled(.random(&dice))
        case 27, 28: return .mapOn(place, number)
        case 29: return .thenOn(place, number)
        case 30: return .recoverOn(place, number)
        case 31, 32: return .tapOn(place)
        case 33: return .catchOn(place)
        case 34, 35: return .then(inner(&dice))
        case 36: return .thenMap(inner(&dice))
        case 37: return .thenReduce(inner(&dice))
        case 38: return .forEach(inner(&dice))
        case 39: return .retry
        case 40: return .awaited
        default:
            return dice.once(in: 2)
                ? .values(number)
                : .hung(.resolved(.random(&dice), dice.pick([.here, .loop(0), .loop(1), .pool, .thread])))
        }
    }
}
