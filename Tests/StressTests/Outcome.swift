@testable import PromisesTestSupport

/// The end of a promise of a random program.
enum Outcome: Hashable {
    case value(Int)
    case error(Fault)

    var isValue: Bool { if case .value = self { true } else { false } }

    init(_ error: any Error) { self = .error(Fault(error)) }

    init(_ result: Result<Int, any Error>) {
        switch result {
        case .success(let value): self = .value(value)
        case .failure(let error): self.init(error)
        }
    }

    func get() throws -> Int {
        switch self {
        case .value(let number): return number
        case .error(let fault): throw fault.error
        }
    }
}

/// The errors of random programs.
enum Fault: Hashable {
    case flaw(Int)
    case returnedSelf, abandoned, cancelled, timedOut, badInput, noWinner
    case unknown(String)

    init(_ error: any Error) {
        switch error {
        case _ where error.isCancelled: self = .cancelled
        case let flaw as Flaw: self = .flaw(flaw.number)
        case PromiseError.returnedSelf: self = .returnedSelf
        case PromiseError.abandoned: self = .abandoned
        case PromiseError.timedOut: self = .timedOut
        case PromiseError.badInput: self = .badInput
        case PromiseError.noWinner: self = .noWinner
        default: self = .unknown("\(error)")
        }
    }

    var error: any Error {
        switch self {
        case .flaw(let number): Flaw(number)
        case .cancelled: PromiseError.cancelled
        default: fatalError("no program rejects with \(self)")
        }
    }
}

extension Outcome: CustomStringConvertible {
    var description: String {
        switch self {
        case .value(let number): "\(number)"
        case .error(let fault): "\(fault)"
        }
    }
}
