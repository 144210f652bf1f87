/// The operations on promises that a program needs. The library is one such implementation, the reference model another.
protocol PromiseImplementation: AnyObject {
    associatedtype ProgramPromise
    associatedtype ProgramResolver

    /// Called when a promise is reported as abandoned, with its number, which is also its origin.
    var onAbandoned: (Int) -> Void { get set }

    /// A pending promise and its resolver.
    func pending(_ name: Int) -> (ProgramPromise, ProgramResolver)
    func settled(_ outcome: Outcome, _ name: Int) -> ProgramPromise
    func settle(_ resolver: ProgramResolver, _ outcome: Outcome)
    func copy(_ resolver: ProgramResolver) -> ProgramResolver
    func drop(_ resolver: consuming ProgramResolver)
    func drop(_ promise: consuming ProgramPromise)
    /// Returns nothing for an operator that makes no promise.
    func attach(
        _ op: Operator, to promise: ProgramPromise, _ body: @escaping (Outcome) -> Answer<ProgramPromise>
    ) -> ProgramPromise?
    func combine(_ combinator: Combinator, _ promises: [ProgramPromise]) -> ProgramPromise
    func cancel(_ promise: ProgramPromise)
    func onCancel(_ resolver: ProgramResolver, _ body: @escaping () -> Void)
    /// Reads the outcome, which handles an error.
    func result(_ promise: ProgramPromise) -> Outcome?
    /// Reads the outcome without handling an error: as text, as the library prints it.
    func state(_ promise: ProgramPromise) -> String
    func turn()
}

/// A handler's reply, with the promise itself.
enum Answer<ProgramPromise> {
    case value(Int)
    case failure(Int)
    case promise(ProgramPromise)
}

/// Runs a program on an implementation, and records the events.
final class Execution<Implementation: PromiseImplementation> {
    let implementation: Implementation
    private(set) var trace: [String] = []
    private(set) var promises: [Int: Implementation.ProgramPromise] = [:]
    private var resolvers: [Int: Implementation.ProgramResolver] = [:]
    /// The promise of a resolver's number: the one made with it, or that of the resolver that it copies.
    private var owners: [Int: Int] = [:]

    init(_ implementation: Implementation) {
        self.implementation = implementation
        implementation.onAbandoned = { [unowned self] in note("p\($0) is reported as abandoned") }
    }

    private func note(_ event: String) { trace.append(event) }

    func run(_ steps: [Step]) {
        for step in steps { run(step) }
    }

    private func run(_ step: Step) {
        let name = step.name
        switch step.action {
        case .make: (promises[name], resolvers[name], owners[name]) = pending(name)
        case .settled(let outcome): promises[name] = implementation.settled(outcome, name)
        case .settle(let number, let outcome):
            guard let resolver = resolvers[number] else { return }
            note("p\(owners[number]!) is to be settled as \(outcome)")
            implementation.settle(resolver, outcome)
        case .copyResolver(let number):
            guard let resolver = resolvers[number] else { return }
            resolvers[name] = implementation.copy(resolver)
            owners[name] = owners[number]
        case .dropResolver(let number):
            // Removed from the table first: dropping it may run handlers, which use the table.
            guard let resolver = resolvers.removeValue(forKey: number) else { return }
            implementation.drop(resolver)
        case .dropPromise(let number):
            guard let promise = promises.removeValue(forKey: number) else { return }
            implementation.drop(promise)
        case .attach(let op, let number, let handler):
            guard let promise = promises[number] else { return }
            note("p\(name) = p\(number).\(op)")
            if let child = implementation.attach(op, to: promise, body(of: handler, name, op)) {
                promises[name] = child
            }
        case .combine(let combinator, let numbers):
            let numbers = numbers.filter { promises[$0] != nil }
            let sources = numbers.map { promises[$0]! }
            note("p\(name) = \(combinator) of \(numbers)")
            promises[name] = implementation.combine(combinator, sources)
        case .cancel(let number):
            guard let promise = promises[number] else { return }
            note("p\(number) is to be cancelled")
            implementation.cancel(promise)
        case .onCancel(let number, let handler):
            guard let resolver = resolvers[number] else { return }
            implementation.onCancel(resolver) { [unowned self] in
                note("handler \(name) runs for a cancellation")
                run(handler.steps)
            }
        case .readResult(let number):
            guard let promise = promises[number] else { return }
            note("p\(number) is \(implementation.result(promise)?.description ?? "pending")")
        case .turn: implementation.turn()
        }
    }

    private func pending(_ name: Int) -> (Implementation.ProgramPromise?, Implementation.ProgramResolver?, Int?) {
        let (promise, resolver) = implementation.pending(name)
        return (promise, resolver, name)
    }

    // Unowned: an execution outlives its loop, and with it every handler.
    private func body(of handler: Handler, _ name: Int, _ op: Operator) -> (Outcome) -> Answer<
        Implementation.ProgramPromise
    > {
        var held: Implementation.ProgramPromise?
        if case .promise(let number, _) = handler.reply, handler.captures { held = promises[number] }
        return { [unowned self, held] outcome in
            note("handler \(name) runs with \(outcome)")
            run(handler.steps)
            switch handler.reply {
            case .value(let number): return .value(number)
            case .failure(let number): return .failure(number)
            case .promise(let number, let other):
                guard op.takesPromise, let promise = held ?? promises[number] else { return .value(other) }
                note("handler \(name) replies p\(number)")
                return .promise(promise)
            }
        }
    }

    // MARK: The end

    /// Releases the resolvers, and runs the loop until it is idle.
    func releaseResolvers() {
        // Handlers that run now may make more.
        while !resolvers.isEmpty {
            for name in resolvers.keys.sorted() { run([Step(name: 0, action: .dropResolver(name))]) }
            implementation.turn()
        }
    }

    /// The state of every promise that is still held.
    var states: [Int: String] { promises.mapValues(implementation.state) }

    /// A promise that waits for itself is pending until it is cancelled.
    func cancelAll() {
        for name in promises.keys.sorted() { run([Step(name: 0, action: .cancel(name))]) }
        implementation.turn()
        releaseResolvers()
    }

    func releasePromises() {
        for name in promises.keys.sorted() { run([Step(name: 0, action: .dropPromise(name))]) }
        implementation.turn()
    }
}
