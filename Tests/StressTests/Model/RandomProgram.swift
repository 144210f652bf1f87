@testable import PromisesTestSupport

/// Makes programs for one thread.
struct RandomProgram {
    private var random: SplitMix64
    private var lastName = 0
    /// The promises of earlier steps, whether or not those have run by then.
    private var promises: [Int] = []
    private var resolvers: [Int] = []
    /// In some programs most promises come from `then`, and return any other, so that they follow one another in long
    /// chains and in circles.
    private let returnsMuch: Bool
    private let cancels: Bool

    static func program(seed: UInt64) -> Program {
        var generator = RandomProgram(random: SplitMix64(seed))
        let count = 4 + generator.random.below(24)
        return Program(steps: generator.steps(count, depth: 0))
    }

    private init(random: SplitMix64) {
        self.random = random
        returnsMuch = self.random.once(in: 3)
        cancels = !self.random.once(in: 4)
    }

    private mutating func steps(_ count: Int, depth: Int) -> [Step] { (0..<count).map { _ in step(depth) } }

    private mutating func step(_ depth: Int) -> Step {
        lastName += 1
        let name = lastName
        // The promise is known before the handler is created, so handlers may return their own promise.
        let action = action(name, depth)
        return Step(name: name, action: action)
    }

    private mutating func action(_ name: Int, _ depth: Int) -> Action {
        if returnsMuch {
            // A settled promise, two gates, and then mostly promises that come from one of these and return each other.
            switch name {
            case 1:
                promises.append(name)
                return .settled(.value(name))
            case 2, 3: return make(name)
            default: if !random.once(in: 2) { return attach(name, depth) }
            }
        }
        if promises.isEmpty { return make(name) }
        if returnsMuch && !random.once(in: 3) { return attach(name, depth) }
        switch random.below(100) {
        case ..<12: return make(name)
        case ..<15:
            promises.append(name)
            return .settled(outcome(name))
        case ..<30: return .settle(resolver(), outcome(name))
        case ..<32:
            let original = resolver()
            resolvers.append(name)
            return .copyResolver(original)
        case ..<36: return .dropResolver(resolver())
        case ..<39: return .dropPromise(promise())
        case ..<45:
            let sources = (0..<random.below(4)).map { _ in promise() }
            promises.append(name)
            return .combine(random.pick(Combinator.allCases), sources)
        case ..<47: return .readResult(promise())
        case ..<48: return .turn
        case ..<54 where depth == 0: return .turn
        case ..<66 where cancels: return random.once(in: 4) ? onCancel(depth) : .cancel(promise())
        default: return attach(name, depth)
        }
    }

    private mutating func make(_ name: Int) -> Action {
        promises.append(name)
        resolvers.append(name)
        return .make
    }

    private mutating func attach(_ name: Int, _ depth: Int) -> Action {
        // Returning a promise is the most error-prone step.
        let op = returnsMuch && !random.once(in: 4) || random.once(in: 3) ? .then : random.pick(Operator.allCases)
        let source = returnsMuch && op == .then ? 1 + random.below(3) : promise()
        if op.makesPromise { promises.append(name) }
        return .attach(op, to: source, handler(op, name, depth))
    }

    private mutating func onCancel(_ depth: Int) -> Action { .onCancel(resolver(), handler(.tap, lastName, depth)) }

    private mutating func handler(_ op: Operator, _ name: Int, _ depth: Int) -> Handler {
        var handler = Handler(reply: .value(name))
        if depth < 2 && random.once(in: 3) { handler.steps = steps(1 + random.below(3), depth: depth + 1) }
        if op.takesPromise && !random.once(in: 4) {
            handler.reply = .promise(returnsMuch ? 1 + random.below(lastName + 4) : promise(), otherwise: name)
            handler.captures = random.once(in: 4)
        } else if op != .guarantee && random.once(in: 4) {
            handler.reply = .failure(name)
        }
        return handler
    }

    private mutating func outcome(_ name: Int) -> Outcome {
        switch random.below(12) {
        case ..<7: .value(name)
        case ..<11: .error(.flaw(name))
        default: .error(.cancelled)
        }
    }

    /// Usually one of the last few, so that steps meet; or one that is yet to be made.
    private mutating func promise() -> Int {
        if random.once(in: 8) { return lastName + 1 + random.below(4) }
        return random.once(in: 3)
            ? random.pick(promises) : promises[promises.count - 1 - random.below(min(4, promises.count))]
    }

    private mutating func resolver() -> Int { random.pick(resolvers) }
}
