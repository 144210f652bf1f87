/// A random program over promises: the model checker runs it on the library and on the model.
///
/// Promises are identified by number. A step whose promise does not exist, because it was dropped or never made, does
/// nothing; so any step may be left out of a program, and the rest is still a program.
struct Program {
    var steps: [Step]
}

struct Step {
    /// The number of the promise that the step makes, if it makes one; it also identifies its handler in a trace.
    let name: Int
    var action: Action
}

enum Action {
    /// A pending promise and its resolver.
    case make
    /// A promise that is settled from the start.
    case settled(Outcome)
    /// By the resolver with that number.
    case settle(Int, Outcome)
    /// A copy of a resolver, which gets the step's own number.
    case copyResolver(Int)
    case dropResolver(Int)
    case dropPromise(Int)
    case attach(Operator, to: Int, Handler)
    case combine(Combinator, [Int])
    case cancel(Int)
    /// The resolver's closure for the cancellation of its promise.
    case onCancel(Int, Handler)
    /// Reads the result, which handles an error.
    case readResult(Int)
    /// Runs the loop until it has nothing to do.
    case turn
}

enum Combinator: String, CaseIterable {
    /// `when(fulfilled:)`, `when(resolved:)`, `race`, `race(fulfilled:)`.
    case all, each, race, raceFulfilled

    /// True if losers are cancelled.
    var isRace: Bool { self == .race || self == .raceFulfilled }
}

enum Operator: String, CaseIterable {
    case map, get, then, recover, recoverAll, guarantee, tap, ensure, ensureThen, `catch`, pipe

    /// True if it makes a promise for the program to use.
    var makesPromise: Bool { self != .catch && self != .pipe }
    /// True if the handler's reply may be a promise.
    var takesPromise: Bool { [.then, .recover, .recoverAll, .ensureThen].contains(self) }
    /// True if the handler receives the outcome.
    var tellsOutcome: Bool { self != .ensure && self != .ensureThen }

    /// True if the handler is called for this outcome.
    func handles(_ outcome: Outcome) -> Bool {
        switch self {
        case .map, .get, .then: outcome.isValue
        case .recover, .catch: !outcome.isValue && outcome != .error(.cancelled)
        case .recoverAll, .guarantee: !outcome.isValue
        case .tap, .ensure, .ensureThen, .pipe: true
        }
    }
}

struct Handler {
    /// The steps before it replies.
    var steps: [Step] = []
    var reply: Reply
    /// True if it holds the promise of its reply from the beginning, if that exists by then.
    var captures = false
}

enum Reply {
    case value(Int)
    /// Throws.
    case failure(Int)
    /// That promise; or the value, if there is none with that number by then.
    case promise(Int, otherwise: Int)
}

// MARK: For people

extension Program: CustomStringConvertible {
    var description: String { steps.flatMap { $0.lines }.joined(separator: "\n") }

    /// The number of steps, including those of handlers.
    var count: Int { steps.reduce(0) { $0 + $1.count } }
}

extension Step {
    var count: Int { 1 + (handler?.steps.reduce(0) { $0 + $1.count } ?? 0) }

    var handler: Handler? {
        switch action {
        case .attach(_, _, let handler), .onCancel(_, let handler): handler
        default: nil
        }
    }

    fileprivate var lines: [String] {
        switch action {
        case .make: ["p\(name) = pending"]
        case .settled(let outcome): ["p\(name) = settled \(outcome)"]
        case .settle(let number, let outcome): ["r\(number).settle \(outcome)"]
        case .copyResolver(let number): ["r\(name) = r\(number)"]
        case .dropResolver(let number): ["drop r\(number)"]
        case .dropPromise(let number): ["drop p\(number)"]
        case .attach(let op, let number, let handler): handler.lines("p\(name) = p\(number).\(op.rawValue)")
        case .combine(let combinator, let numbers):
            ["p\(name) = \(combinator) \(numbers.map { "p\($0)" }.joined(separator: ", "))"]
        case .cancel(let number): ["cancel p\(number)"]
        case .onCancel(let number, let handler): handler.lines("c\(name): r\(number).onCancel")
        case .readResult(let number): ["result of p\(number)"]
        case .turn: ["turn"]
        }
    }
}

extension Handler {
    fileprivate func lines(_ head: String) -> [String] {
        let last =
            switch reply {
            case .value(let number): "\(number)"
            case .failure(let number): "throw flaw\(number)"
            case .promise(let number, let other): "p\(number) ?? \(other)"
            }
        let head = captures ? head + " [holds it]" : head
        if steps.isEmpty { return ["\(head) { \(last) }"] }
        let body = steps.flatMap { $0.lines } + [last]
        return ["\(head) {"] + body.map { "    \($0)" } + ["}"]
    }
}
