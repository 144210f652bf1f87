/// The operations on promises that a program needs. The library is one such machine, the reference model another.
protocol Machine: AnyObject {
    associatedtype Handle
    associatedtype Key

    /// Called when a promise is reported as abandoned, with its number, which is also its origin.
    var onAbandoned: (Int) -> Void { get set }

    /// A pending promise and its resolver.
    func pending(_ name: Int) -> (Handle, Key)
    func settled(_ outcome: Outcome, _ name: Int) -> Handle
    func settle(_ key: Key, _ outcome: Outcome)
    func copy(_ key: Key) -> Key
    func drop(_ key: consuming Key)
    func drop(_ handle: consuming Handle)
    /// Returns nothing for an operator that makes no promise.
    func attach(
        _ op: Operator, to handle: Handle, _ body: @escaping (Outcome) -> Answer<Handle>
    ) -> Handle?
    func gather(_ combinator: Combinator, _ handles: [Handle]) -> Handle
    func cancel(_ handle: Handle)
    func onCancel(_ key: Key, _ body: @escaping () -> Void)
    /// Reads the outcome, which handles an error.
    func look(_ handle: Handle) -> Outcome?
    /// Reads the outcome without handling an error: as text, as the library prints it.
    func peek(_ handle: Handle) -> String
    func turn()
}

/// A handler's reply, with the promise itself.
enum Answer<Handle> {
    case value(Int)
    case failure(Int)
    case promise(Handle)
}

/// One event of a running program.
enum Event: Hashable {
    case ran(Int, Outcome)
    case replied(Int, promise: Int)
    case cancelled(Int)
    case looked(Int, Outcome?)
    case abandoned(Int)
    case attached(Int, Operator, to: Int)
    case gathered(Int, [Int], Combinator)
    case settled(Int, Outcome)
    case asked(cancel: Int)
}

extension Event: CustomStringConvertible {
    var description: String {
        switch self {
        case .ran(let name, let outcome): "handler \(name) runs with \(outcome)"
        case .replied(let name, let promise): "handler \(name) replies p\(promise)"
        case .cancelled(let name): "handler \(name) runs for a cancellation"
        case .looked(let name, let outcome): "p\(name) is " + (outcome?.description ?? "pending")
        case .abandoned(let name): "p\(name) is reported as abandoned"
        case .attached(let name, let op, let source): "p\(name) = p\(source).\(op.rawValue)"
        case .gathered(let name, let sources, let combinator): "p\(name) = \(combinator) of \(sources)"
        case .settled(let name, let outcome): "r\(name) settles \(outcome)"
        case .asked(let name): "p\(name) is to be cancelled"
        }
    }
}

/// Runs a program on a machine, and records the events.
final class Execution<M: Machine> {
    let machine: M
    private(set) var trace: [Event] = []
    private(set) var promises: [Int: M.Handle] = [:]
    private var keys: [Int: M.Key] = [:]
    /// The promise of a resolver's number: the one made with it, or that of the resolver that it copies.
    private var owners: [Int: Int] = [:]

    init(_ machine: M) {
        self.machine = machine
        machine.onAbandoned = { [unowned self] in note(.abandoned($0)) }
    }

    func note(_ event: Event) { trace.append(event) }

    func run(_ steps: [Step]) {
        for step in steps { run(step) }
    }

    private func run(_ step: Step) {
        let name = step.name
        switch step.action {
        case .make: (promises[name], keys[name], owners[name]) = pending(name)
        case .settled(let outcome): promises[name] = machine.settled(outcome, name)
        case .settle(let number, let outcome):
            guard let key = keys[number] else { return }
            note(.settled(owners[number]!, outcome))
            machine.settle(key, outcome)
        case .copyResolver(let number):
            guard let key = keys[number] else { return }
            keys[name] = machine.copy(key)
            owners[name] = owners[number]
        case .dropResolver(let number):
            // Removed from the table first: dropping it may run handlers, which use the table.
            guard let key = keys.removeValue(forKey: number) else { return }
            machine.drop(key)
        case .dropPromise(let number):
            guard let handle = promises.removeValue(forKey: number) else { return }
            machine.drop(handle)
        case .attach(let op, let number, let handler):
            guard let handle = promises[number] else { return }
            note(.attached(name, op, to: number))
            if let child = machine.attach(op, to: handle, body(of: handler, name, op)) { promises[name] = child }
        case .gather(let combinator, let numbers):
            let numbers = numbers.filter { promises[$0] != nil }
            let handles = numbers.map { promises[$0]! }
            note(.gathered(name, numbers, combinator))
            promises[name] = machine.gather(combinator, handles)
        case .cancel(let number):
            guard let handle = promises[number] else { return }
            note(.asked(cancel: number))
            machine.cancel(handle)
        case .onCancel(let number, let handler):
            guard let key = keys[number] else { return }
            machine.onCancel(key) { [unowned self] in
                note(.cancelled(name))
                run(handler.steps)
            }
        case .look(let number):
            guard let handle = promises[number] else { return }
            note(.looked(number, machine.look(handle)))
        case .turn: machine.turn()
        }
    }

    private func pending(_ name: Int) -> (M.Handle?, M.Key?, Int?) {
        let (handle, key) = machine.pending(name)
        return (handle, key, name)
    }

    // Unowned: an execution outlives its loop, and with it every handler.
    private func body(of handler: Handler, _ name: Int, _ op: Operator) -> (Outcome) -> Answer<M.Handle> {
        var held: M.Handle?
        if case .promise(let number, _) = handler.reply, handler.captures { held = promises[number] }
        return { [unowned self, held] outcome in
            note(.ran(name, outcome))
            run(handler.steps)
            switch handler.reply {
            case .value(let number): return .value(number)
            case .failure(let number): return .failure(number)
            case .promise(let number, let other):
                guard op.takesPromise, let handle = held ?? promises[number] else { return .value(other) }
                note(.replied(name, promise: number))
                return .promise(handle)
            }
        }
    }

    // MARK: The end

    /// Releases the resolvers, and runs the loop until it is idle.
    func releaseResolvers() {
        // Handlers that run now may make more.
        while !keys.isEmpty {
            for name in keys.keys.sorted() { run([Step(name: 0, action: .dropResolver(name))]) }
            machine.turn()
        }
    }

    /// The promises that have been cancelled, and are pending.
    var pendingDespiteCancellation: [Int] {
        trace.compactMap { event in
            guard case .asked(let name) = event, let handle = promises[name] else { return nil }
            return machine.peek(handle) == "pending" ? name : nil
        }
    }

    /// The state of every promise that is still held.
    var states: [Int: String] { promises.mapValues(machine.peek) }

    /// A promise that waits for itself is pending until it is cancelled.
    func cancelAll() {
        for name in promises.keys.sorted() { run([Step(name: 0, action: .cancel(name))]) }
        machine.turn()
        releaseResolvers()
    }

    func releasePromises() {
        for name in promises.keys.sorted() { run([Step(name: 0, action: .dropPromise(name))]) }
        machine.turn()
    }

    /// Registers a promise from elsewhere.
    func adopt(_ handle: M.Handle, key: M.Key?, as name: Int) {
        promises[name] = handle
        keys[name] = key
        owners[name] = name
    }

    func key(_ name: Int) -> M.Key? { keys[name] }
}
