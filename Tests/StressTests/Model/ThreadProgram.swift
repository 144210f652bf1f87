@testable import PromisesTestSupport

/// The actions of the threads of one round.
///
/// Each thread first makes some promises, which all then know; after that all begin at once. The name of a promise is
/// `thread * 1000 + number`.
///
/// Nothing may come to wait for itself, except in ways that the library promises to detect: a handler attached in the
/// prelude returns a promise of a lower thread, or of its own thread's prelude, so circles go through `then` and its
/// kin and stay on one thread. A handler attached later returns a promise older than its own.
struct ThreadProgram {
    var prelude: [Step] = []
    var script: [Step] = []

    /// The plans of all threads.
    static func plans(seed: UInt64, threads: Int) -> [ThreadProgram] {
        var drafter = Drafter(SplitMix64(seed), threads)
        return drafter.plans()
    }
}

private struct Drafter {
    private var random: SplitMix64
    private let threads: Int
    private var lastName = 0
    /// All promises of the preludes, and those with resolvers.
    private var shared: [Int] = []
    private var resolvers: [Int] = []
    /// Further promises of the current thread.
    private var local: [Int] = []
    /// Many handlers for one promise, so that some are attached during its settlement.
    private let isBurst: Bool
    private let cancels: Bool
    /// Many promises returned by handlers of their own thread, while other threads cancel them.
    private let isMeeting: Bool

    init(_ random: SplitMix64, _ threads: Int) {
        self.random = random
        self.threads = threads
        isBurst = self.random.once(in: 3)
        let (meets, cancels) = (self.random.once(in: 3), self.random.once(in: 3))
        isMeeting = meets && !isBurst
        self.cancels = cancels || meets
    }

    mutating func plans() -> [ThreadProgram] {
        var plans = (0..<threads).map { ThreadProgram(prelude: prelude($0)) }
        for thread in plans.indices {
            lastName = thread * 1000 + 100
            local = []
            let count = isBurst ? 16 + random.below(32) : 3 + random.below(12)
            plans[thread].script = (0..<count).map { _ in step(depth: 0) }
        }
        return plans
    }

    private mutating func prelude(_ thread: Int) -> [Step] {
        let lower = shared
        lastName = thread * 1000
        let gates = 1 + random.below(isBurst ? 1 : 3)
        let followers = isMeeting ? 8 : random.below(isBurst ? 2 : 5)
        let own = lastName + 1...lastName + gates + followers
        shared += own
        var steps: [Step] = []
        for name in own {
            lastName = name
            if steps.count < gates {
                resolvers.append(name)
                steps.append(Step(name: name, action: .make))
                continue
            }
            let op = random.pick([Operator.then, .then, .then, .recoverAll, .recover, .map, .tap])
            var handler = Handler(reply: .value(name))
            if op.takesPromise {
                let known = isMeeting ? Array(own) : random.once(in: 3) ? shared : lower + own
                handler.reply = .promise(random.pick(known), otherwise: name)
            } else if random.once(in: 4) {
                handler.reply = .failure(name)
            }
            steps.append(Step(name: name, action: .attach(op, to: own.lowerBound + random.below(gates), handler)))
        }
        return steps
    }

    private mutating func step(depth: Int) -> Step {
        lastName += 1
        let name = lastName
        if isMeeting && depth == 0 {
            switch random.below(10) {
            case ..<4: return Step(name: name, action: .cancel(random.pick(shared)))
            case ..<6: return Step(name: name, action: .turn)
            default: break
            }
        }
        switch random.below(100) {
        case ..<(isBurst ? 6 : 15): return Step(name: name, action: .settle(random.pick(resolvers), outcome(name)))
        case ..<20: return Step(name: name, action: .dropResolver(random.pick(resolvers)))
        case ..<23: return Step(name: name, action: .dropPromise(promise()))
        case ..<30:
            let sources = (0..<1 + random.below(3)).map { _ in promise() }
            if depth == 0 { local.append(name) }
            let combinator = random.pick(Combinator.allCases.filter { cancels || !$0.isRace })
            return Step(name: name, action: .combine(combinator, sources))
        case ..<38 where depth == 0: return Step(name: name, action: .turn)
        case ..<44 where cancels:
            let isWatch = random.once(in: 4)
            let watch = Action.onCancel(random.pick(resolvers), Handler(reply: .value(0)))
            return Step(name: name, action: isWatch ? watch : .cancel(promise()))
        default: return attach(name, depth)
        }
    }

    private mutating func attach(_ name: Int, _ depth: Int) -> Step {
        let op = random.once(in: 3) ? .tap : random.pick(Operator.allCases)
        let source = promise()
        var handler = Handler(reply: .value(name))
        if op.takesPromise && !random.once(in: 3) {
            handler.reply = .promise(promise(), otherwise: name)
            handler.captures = random.once(in: 3)
        } else if ![.guarantee, .ensureThen].contains(op) && random.once(in: 4) {
            handler.reply = .failure(name)
        }
        if depth == 0 {
            if random.once(in: 4) { handler.steps = (0..<1 + random.below(2)).map { _ in step(depth: 1) } }
            // Only the handler itself refers to its promises.
            if op.makesPromise { local.append(name) }
        }
        return Step(name: name, action: .attach(op, to: source, handler))
    }

    private mutating func outcome(_ name: Int) -> Outcome {
        random.once(in: 3) ? .error(.flaw(name)) : .value(name)
    }

    private mutating func promise() -> Int {
        if isBurst && !random.once(in: 4) { return shared[0] }
        return local.isEmpty || !random.once(in: 3) ? random.pick(shared) : random.pick(local)
    }
}
