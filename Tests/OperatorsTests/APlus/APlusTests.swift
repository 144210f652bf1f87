@testable import PromisesTestSupport

/// The clauses 2.1 to 2.3 of Promises/A+ 1.1, each once; docs/coming-from/javascript.md has the departures.
///
/// Each is tried with promises that settle before a handler is attached, at once afterwards, and later.
enum APlusTests {}

extension APlusTests {
    /// The time when a promise settles, relative to attaching handlers.
    enum Settling: CaseIterable {
        /// It has settled.
        case already
        /// On the next line, in the same turn.
        case atOnce
        /// By a job that is queued after the line that attaches.
        case laterByAJob
        /// By a timer.
        case laterByATimer

        var isLater: Bool { self == .laterByAJob || self == .laterByATimer }

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
            case .laterByAJob:
                try attach()
                loop.enqueue(settle)
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
        func make<Value>(_ loop: EventLoop) throws -> (Promise<Value>, Resolver<Value>) {
            let (promise, resolver) = Promise<Value>.pending()
            let inner: Promise<Value>
            switch self {
            case .handMade: return (promise, resolver)
            case .derived: return (promise.tap { _ in }, resolver)
            case .linked: inner = promise.tap { _ in }
            case .following: inner = promise
            case .followingWithOthers:
                inner = promise
                inner.ignoringErrors()
            }
            let outer = Promise.value(()).then { inner }
            try loop.run()
            return (outer, resolver)
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
        ///
        /// - Parameter beforeSettling: called while the promise is certainly pending, and its loop has been driven.
        func run<Value>(
            _ outcome: Result<Value, any Error>, beforeSettling: () -> Void = {},
            attach: (Promise<Value>) throws -> Void
        ) throws {
            try inLoop { loop throws in
                let (promise, resolver) = try kind.make(loop) as (Promise<Value>, Resolver<Value>)
                try settling.run(loop, settle: { resolver.resolve(outcome) }) {
                    try attach(promise)
                    if settling != .already {
                        // The jobs queued now, including the one that settles, come after this.
                        try loop.turn(.poll)
                        beforeSettling()
                    }
                }
            }
        }

        /// The same with a guarantee.
        func run<Value>(_ value: Value, attach: (Guarantee<Value>) throws -> Void) throws {
            try inLoop { loop throws in
                let (promise, resolver) = try kind.make(loop) as (Promise<Value>, Resolver<Value>)
                let guarantee = promise.recover { _ -> Guarantee<Value> in fatalError("it is never rejected") }
                try settling.run(loop, settle: { resolver.fulfill(value) }) { try attach(guarantee) }
            }
        }
    }
}

extension APlusTests {
    /// The operators that call the functions named onFulfilled and onRejected in the specification, and those of a
    /// guarantee.
    enum Handler: CaseIterable {
        case map, then, done, get, tapOfAValue, ensureOfAValue, ensureThenOfAValue
        case `catch`, recover, recoverToAGuarantee, tapOfAnError, ensureOfAnError, ensureThenOfAnError
        case mapOfAGuarantee, thenOfAGuarantee, doneOfAGuarantee, getOfAGuarantee, tapOfAGuarantee

        static let ofValues = Array(allCases[..<7]), ofErrors = Array(allCases[7..<13])
        static let ofGuarantees = Array(allCases[13...])

        var isForErrors: Bool { Self.ofErrors.contains(self) }
        var isForGuarantees: Bool { Self.ofGuarantees.contains(self) }
        /// The outcome with which it is called.
        var outcome: Result<Int, any Error> { isForErrors ? .failure(Flaw(7)) : .success(7) }

        /// Attaches `body`, which is called with the outcome.
        func attach(to source: Source, _ body: @escaping (Result<Int, any Error>) -> Void) {
            let promise = source.promise
            let value = { (value: Int) in body(.success(value)) }
            let error = { (error: any Error) in body(.failure(error)) }
            // Handlers called for any outcome.
            let ofThis = { (outcome: Result<Int, any Error>?) in
                switch outcome {
                case .success(let number)? where !isForErrors: value(number)
                case .failure(let flaw)? where isForErrors: error(flaw)
                default: break
                }
            }
            switch self {
            case .map: promise.map { value($0) }.ignoringErrors()
            case .then:
                promise.then { number -> Promise<Void> in
                    value(number)
                    return .value
                }.ignoringErrors()
            case .done: promise.done { value($0) }.ignoringErrors()
            case .get: promise.get { value($0) }.ignoringErrors()
            case .tapOfAValue, .tapOfAnError: promise.tap { ofThis($0) }.ignoringErrors()
            case .ensureOfAValue, .ensureOfAnError: promise.ensure { ofThis(promise.result) }.ignoringErrors()
            case .ensureThenOfAValue, .ensureThenOfAnError:
                promise.ensureThen {
                    ofThis(promise.result)
                    return .value
                }.ignoringErrors()
            case .catch: promise.catch { error($0) }
            case .recover:
                promise.recover { flaw -> Promise<Int> in
                    error(flaw)
                    return .value(0)
                }.ignoringErrors()
            case .recoverToAGuarantee:
                promise.recover { flaw -> Guarantee<Int> in
                    error(flaw)
                    return .value(0)
                }
            case .mapOfAGuarantee: _ = source.guarantee.map { value($0) }
            case .thenOfAGuarantee:
                source.guarantee.then { number -> Guarantee<Void> in
                    value(number)
                    return .value
                }
            case .doneOfAGuarantee: source.guarantee.done { value($0) }
            case .getOfAGuarantee: source.guarantee.get { value($0) }
            case .tapOfAGuarantee: source.guarantee.tap { ofThis($0) }
            }
        }
    }

    /// The source of handlers: a promise, or the guarantee that is made from it on first use.
    final class Source {
        let promise: Promise<Int>
        lazy var guarantee = promise.recover { _ -> Guarantee<Int> in fatalError("it is never rejected") }

        init(_ promise: Promise<Int>) { self.promise = promise }
    }
}

/// An object with identity: shows that a value or an error is the very same one.
final class Thing: Error, Sendable {}

extension Promise {
    /// The error, if it is a `PromiseError`.
    var promiseError: PromiseError? { error as? PromiseError }
}
