@testable import PromisesTestSupport

/// The error of the operator storm; the number tells one from another.
struct StormFlaw: Error, Equatable {
    let number: Int
}

/// The possible ends of a promise of the operator storm.
enum StormOutcome: Hashable {
    /// 0 to 15; the storm adds modulo 16.
    case value(Int)
    /// 0 to 7.
    case flaw(Int)
    case cancelled, timedOut, abandoned, noWinner, missing, other

    static let ofErrors: [StormOutcome] =
        (0..<8).map(StormOutcome.flaw) + [.cancelled, .timedOut, .abandoned, .noWinner, .missing, .other]
    static let all = (0..<16).map(StormOutcome.value) + ofErrors

    init(_ result: Result<Int, any Error>) {
        switch result {
        case .success(let value): self = .value(value)
        case .failure(let error): self.init(error)
        }
    }

    init(_ error: any Error) {
        if error.isCancelled {
            self = .cancelled
            return
        }
        switch error {
        case let flaw as StormFlaw: self = .flaw(flaw.number)
        case PromiseError.timedOut as PromiseError: self = .timedOut
        case PromiseError.abandoned as PromiseError: self = .abandoned
        default:
            switch error as? PromiseError {
            case .noWinner?: self = .noWinner
            case .compactMap?: self = .missing
            default: self = .other
            }
        }
    }

    fileprivate var bit: UInt32 {
        switch self {
        case .value(let value): 1 << UInt32(value & 15)
        case .flaw(let number): 1 << UInt32(16 + number & 7 | 16)
        case .cancelled: 1 << 24
        case .timedOut: 1 << 25
        case .abandoned: 1 << 26
        case .noWinner: 1 << 27
        case .missing: 1 << 29
        case .other: 1 << 30
        }
    }
}

/// The possible outcomes of a promise; threads and timers choose one.
struct OutcomeSet: Hashable, Sendable, CustomStringConvertible {
    private var bits: UInt32 = 0

    init() {}
    init(_ outcome: StormOutcome) { bits = outcome.bit }

    static func | (one: OutcomeSet, other: OutcomeSet) -> OutcomeSet {
        var both = one
        both.bits |= other.bits
        return both
    }

    static func | (set: OutcomeSet, outcome: StormOutcome) -> OutcomeSet { set | OutcomeSet(outcome) }

    func contains(_ outcome: StormOutcome) -> Bool { bits & outcome.bit != 0 }
    var outcomes: [StormOutcome] { StormOutcome.all.filter(contains) }
    var values: [Int] { (0..<16).filter { contains(.value($0)) } }
    var errors: OutcomeSet { StormOutcome.ofErrors.filter(contains).reduce(OutcomeSet(), |) }
    var hasError: Bool { errors != OutcomeSet() }

    /// These outcomes, each replaced by those that `body` returns for it.
    func mapped(_ body: (StormOutcome) -> OutcomeSet) -> OutcomeSet { outcomes.reduce(OutcomeSet()) { $0 | body($1) } }

    /// Replaces the values; errors stay.
    func mappedValues(_ body: (Int) -> OutcomeSet) -> OutcomeSet {
        mapped { if case .value(let value) = $0 { body(value) } else { OutcomeSet($0) } }
    }

    /// Replaces the errors that `isHandled` selects; everything else stays.
    func recovered(where isHandled: (StormOutcome) -> Bool = { $0 != .cancelled }, _ set: OutcomeSet) -> OutcomeSet {
        mapped { outcome in
            if case .value = outcome { return OutcomeSet(outcome) }
            return isHandled(outcome) ? set : OutcomeSet(outcome)
        }
    }

    /// The sums of a value of this set and one of the other.
    func sums(with other: OutcomeSet) -> OutcomeSet {
        var sums = OutcomeSet()
        for one in values { for two in other.values { sums = sums | .value((one + two) & 15) } }
        return sums
    }

    var description: String { "\(outcomes)" }
}
