import Synchronization

@testable import Promises
@testable import PromisesTestSupport

/// Counts the live objects of one run, and the releases on a wrong thread.
final class Census: Sendable {
    private let values = Atomic<Int>(0)
    private let handlers = Atomic<Int>(0)
    private let strayed = Atomic<Int>(0)

    var valueCount: Int { values.load(ordering: .acquiring) }
    /// The number of handlers that have neither run nor been dropped.
    var handlerCount: Int { handlers.load(ordering: .acquiring) }
    /// The number of releases on another thread than the required one.
    var strays: Int { strayed.load(ordering: .acquiring) }

    /// Counted while it lives.
    final class Witness: Sendable {
        private let census: Census
        private let isHandler: Bool
        private let home: pthread_t?

        /// Of a value.
        init(_ census: Census) {
            (self.census, isHandler, home) = (census, false, nil)
            census.values.add(1, ordering: .relaxed)
        }

        /// Of a handler.
        /// - Parameter staysHome: true if it must be released on this thread.
        init(_ census: Census, staysHome: Bool) {
            (self.census, isHandler, home) = (census, true, staysHome ? pthread_self() : nil)
            census.handlers.add(1, ordering: .relaxed)
        }

        deinit {
            if let home, pthread_equal(home, pthread_self()) == 0 { census.strayed.add(1, ordering: .relaxed) }
            if isHandler {
                census.handlers.subtract(1, ordering: .releasing)
            } else {
                census.values.subtract(1, ordering: .releasing)
            }
        }

        /// For the closure that holds it, when it runs.
        func use() {
            if let home, pthread_equal(home, pthread_self()) == 0 { census.strayed.add(1, ordering: .relaxed) }
        }
    }
}

/// The values of the promises, in the forms that a core stores differently.
protocol ModelValue: Sendable {
    init(_ number: Int, _ census: Census)
    var number: Int { get }
}

/// Needs no destruction.
struct PlainValue: ModelValue {
    let number: Int
    init(_ number: Int, _ census: Census) { self.number = number }
}

/// A reference in the core's own words.
struct CountedValue: ModelValue {
    let number: Int
    private let witness: Census.Witness

    init(_ number: Int, _ census: Census) {
        self.number = number
        witness = Census.Witness(census)
    }
}

/// Too large for the core's own words.
struct WideValue: ModelValue {
    let number: Int
    private let witness: Census.Witness
    private let rest = (1, 2, 3)

    init(_ number: Int, _ census: Census) {
        self.number = number
        witness = Census.Witness(census)
    }
}

/// The library under a program.
final class LibraryPromises<Value: ModelValue>: PromiseImplementation {
    let census: Census
    private let loop: EventLoop
    var onAbandoned: (Int) -> Void = { _ in }

    init(_ loop: EventLoop, _ census: Census) {
        self.loop = loop
        self.census = census
    }

    /// The `file` of the promises that a program makes; the line is their number.
    static var file: StaticString { "Model" }

    private func value(_ number: Int) -> Value { Value(number, census) }

    func pending(_ name: Int) -> (Promise<Value>, Resolver<Value>) {
        let (promise, resolver) = Promise<Value>.pending(Self.file, UInt(name))
        return (promise, resolver)
    }

    func settled(_ outcome: Outcome, _ name: Int) -> Promise<Value> {
        switch outcome {
        case .value(let number): .value(value(number))
        case .error(let fault): Promise(error: fault.error, Self.file, UInt(name))
        }
    }

    func settle(_ resolver: Resolver<Value>, _ outcome: Outcome) {
        switch outcome {
        case .value(let number): resolver.fulfill(value(number))
        case .error(let fault): resolver.reject(fault.error)
        }
    }

    func copy(_ resolver: Resolver<Value>) -> Resolver<Value> { resolver }
    func drop(_ resolver: consuming Resolver<Value>) {}
    func drop(_ promise: consuming Promise<Value>) {}

    func attach(
        _ op: Operator, to promise: Promise<Value>, _ body: @escaping (Outcome) -> Answer<Promise<Value>>
    ) -> Promise<Value>? {
        // An inline handler belongs to no thread.
        let witness = Census.Witness(census, staysHome: op != .pipe)
        let called = { (outcome: Outcome) -> Answer<Promise<Value>> in
            witness.use()
            return body(outcome)
        }
        switch op {
        case .map: return promise.map { try self.value(of: called(.value($0.number))) }
        case .get: return promise.get { _ = try self.value(of: called(.value($0.number))) }
        case .then: return promise.then { try self.promise(of: called(.value($0.number))) }
        case .recover:
            return promise.recover(policy: .allErrorsExceptCancellation) { try self.promise(of: called(Outcome($0))) }
        case .recoverAll: return promise.recover(policy: .allErrors) { try self.promise(of: called(Outcome($0))) }
        case .guarantee:
            return promise.recover { error -> Guarantee<Value> in
                guard case .value(let number) = called(Outcome(error)) else { return .value(self.value(-1)) }
                return .value(self.value(number))
            }.asPromise()
        case .tap: return promise.tap { _ = called(Outcome($0.map(\.number))) }
        case .ensure: return promise.ensure { _ = called(.value(0)) }
        case .ensureThen: return promise.ensureThen { self.guarantee(of: called(.value(0))) }
        case .catch: promise.catch(policy: .allErrorsExceptCancellation) { _ = called(Outcome($0)) }
        case .pipe:
            // There is only this thread.
            nonisolated(unsafe) let unsafeCalled = called
            promise.pipe { _ = unsafeCalled(Outcome($0.map(\.number))) }
        }
        return nil
    }

    private func value(of answer: Answer<Promise<Value>>) throws -> Value {
        switch answer {
        case .value(let number): return value(number)
        case .failure(let number): throw Flaw(number)
        case .promise: preconditionFailure("a handler of this kind has no promise to return")
        }
    }

    private func promise(of answer: Answer<Promise<Value>>) throws -> Promise<Value> {
        if case .promise(let promise) = answer { return promise }
        return .value(try value(of: answer))
    }

    private func guarantee(of answer: Answer<Promise<Value>>) -> Guarantee<Void> {
        let promise = if case .promise(let promise) = answer { promise } else { Promise.value(value(0)) }
        return promise.map { _ in }.recover { _ -> Guarantee<Void> in .value }
    }

    func combine(_ combinator: Combinator, _ promises: [Promise<Value>]) -> Promise<Value> {
        switch combinator {
        case .all: when(fulfilled: promises).map { values in self.value(values.reduce(0) { $0 + $1.number }) }
        case .each:
            when(resolved: promises).map { outcomes in
                self.value(outcomes.reduce(0) { $0 + ((try? $1.get().number) ?? 1) })
            }.asPromise()
        case .race: race(promises)
        case .raceFulfilled: race(fulfilled: promises)
        }
    }

    func cancel(_ promise: Promise<Value>) { promise.cancel() }

    func onCancel(_ resolver: Resolver<Value>, _ body: @escaping () -> Void) {
        let witness = Census.Witness(census, staysHome: true)
        resolver.onCancel {
            witness.use()
            body()
        }
    }

    func result(_ promise: Promise<Value>) -> Outcome? { promise.result.map { Outcome($0.map(\.number)) } }

    func state(_ promise: Promise<Value>) -> String {
        promise.outcome.map { Outcome($0.map(\.number)).description } ?? "pending"
    }

    func turn() {
        do { try loop.turn(.poll) } catch { fatalError("a turn without descriptors failed: \(error)") }
    }
}
