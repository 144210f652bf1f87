@testable import PromisesTestSupport

/// The clauses 2.1 to 2.3 of Promises/A+ 1.1, each once; docs/coming-from/javascript.md has the departures.
///
/// Each is tried with promises that settle before a handler is attached, at once afterwards, and later.
enum APlusTests {
    static let outcomes: [Result<Int, any Error>] = [.success(7), .failure(Flaw(7))]
}

extension APlusTests {
    /// The time when a promise settles, relative to attaching handlers.
    enum Settling: CaseIterable {
        /// It has settled.
        case already
        /// On the next line, in the same turn.
        case atOnce
        case laterByATimer

        /// Calls `settle` and `attach` in the order of this case, and runs the loop until nothing is left.
        func run(_ loop: EventLoop, settle: @escaping () -> Void, attach: () throws -> Void) throws {
            switch self {
            case .already:
                settle()
                try loop.run()
                try attach()
            case .atOnce:
                try attach()
                settle()
            case .laterByATimer:
                try attach()
                loop.schedule(after: .seconds(1), settle)
            }
            try loop.run()
        }
    }

    /// The origin of a promise's outcome.
    enum Kind: CaseIterable {
        /// Settled by a resolver.
        case handMade
        /// The result of an operator.
        case derived
        /// Merged with the result of an operator, which a handler has returned.
        case linked
        /// Waits for the promise that a handler has returned.
        case following
        /// The same, if that one has its own handlers.
        case followingWithOthers

        /// A pending promise of this kind, and the resolver that finally settles it.
        func make(_ loop: EventLoop) throws -> (Promise<Int>, Resolver<Int>) {
            let (promise, resolver) = Promise<Int>.pending()
            // It keeps no reference to the argument, so that this may be linked.
            func follow(_ inner: Promise<Int>) -> Promise<Int> { Promise.value(()).then { inner } }
            let made =
                switch self {
                case .handMade: promise
                case .derived: promise.tap { _ in }
                case .linked: follow(promise.tap { _ in })
                case .following, .followingWithOthers: follow(promise)
                }
            if self == .followingWithOthers { promise.ignoringErrors() }
            try loop.run()
            return (made, resolver)
        }
    }

    /// A promise of some kind that settles at some time.
    struct Setting: CustomTestStringConvertible, Sendable {
        let settling: Settling
        let kind: Kind

        static let all = Settling.allCases.flatMap { settling in
            Kind.allCases.map { Setting(settling: settling, kind: $0) }
        }

        var testDescription: String { "\(settling), \(kind)" }

        /// Passes `attach` a promise that settles with `outcome`, on a loop in virtual time, which it then runs until
        /// nothing is left.
        func run(_ outcome: Result<Int, any Error>, attach: (Promise<Int>) -> Void) throws {
            try inLoop { loop throws in
                let (promise, resolver) = try kind.make(loop)
                try settling.run(loop, settle: { resolver.resolve(outcome) }) { attach(promise) }
            }
        }
    }

    /// The operators that call the functions named onFulfilled and onRejected in the specification, and those of a
    /// guarantee.
    enum Handler: CaseIterable {
        case map, then, done, get, `catch`, recover, recoverToAGuarantee, tap, ensure, ensureThen
        case mapOfAGuarantee, thenOfAGuarantee, doneOfAGuarantee, getOfAGuarantee, tapOfAGuarantee

        static let ofPromises = Array(allCases[..<10])
        static let throwing: [Handler] = [.map, .then, .done, .get, .recover]

        /// The outcomes that its promise may have.
        var outcomes: [Result<Int, any Error>] {
            Self.ofPromises.contains(self) ? APlusTests.outcomes : [.success(7)]
        }

        func isCalled(with outcome: Result<Int, any Error>) -> Bool {
            switch self {
            case .catch, .recover, .recoverToAGuarantee: outcome.flaw != nil
            case .tap, .ensure, .ensureThen: true
            default: outcome.flaw == nil
            }
        }

        /// The outcome of its own promise, if its body returns.
        func result(of outcome: Result<Int, any Error>) -> Result<Int, any Error> {
            self == .recover || self == .recoverToAGuarantee ? .success(7) : outcome
        }

        /// Attaches `body`, which is called with the outcome, and may throw in an operator of `throwing`.
        func attach(
            to promise: Promise<Int>, _ body: @escaping (Result<Int, any Error>) throws -> Void
        ) -> Promise<Int> {
            func take(_ value: Int) throws -> Int {
                try body(.success(value))
                return value
            }
            func sure() -> Guarantee<Int> { promise.recover { _ in Guarantee.value(0) } }
            switch self {
            case .map: return promise.map { try take($0) }
            case .then: return promise.then { Promise.value(try take($0)) }
            case .done: return promise.done { _ = try take($0) }.map { 7 }
            case .get: return promise.get { _ = try take($0) }
            case .catch:
                promise.catch { try! body(.failure($0)) }
                return promise
            case .recover:
                return promise.recover { error -> Promise<Int> in
                    try body(.failure(error))
                    return .value(7)
                }
            case .recoverToAGuarantee:
                return promise.recover { error -> Guarantee<Int> in
                    try! body(.failure(error))
                    return .value(7)
                }.asPromise()
            case .tap: return promise.tap { try! body($0) }
            case .ensure: return promise.ensure { try! body(promise.result!) }
            case .ensureThen:
                return promise.ensureThen {
                    try! body(promise.result!)
                    return .value
                }
            case .mapOfAGuarantee: return sure().map { try! take($0) }.asPromise()
            case .thenOfAGuarantee: return sure().then { Guarantee.value(try! take($0)) }.asPromise()
            case .doneOfAGuarantee: return sure().done { _ = try! take($0) }.map { 7 }.asPromise()
            case .getOfAGuarantee: return sure().get { _ = try! take($0) }.asPromise()
            case .tapOfAGuarantee: return sure().tap { try! body($0) }.asPromise()
            }
        }
    }
}
