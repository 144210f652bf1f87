import Reactor

/// The origin of a cancellation, which determines its effect on a root, and the error, if it is not
/// `PromiseError.cancelled`.
enum CancellationRequest {
    /// The user cancelled this promise itself.
    case itself((any Error)?)
    /// The promise's time limit has expired: it does not wait for clean-ups.
    case expired(any Error)
    /// A waiter of this promise has withdrawn.
    case unobserved

    /// Whether the promise continues if another handler waits for it.
    var sparesWanted: Bool {
        if case .unobserved = self { true } else { false }
    }

    /// Whether the promise settles without waiting for clean-ups.
    var isOutOfTime: Bool {
        if case .expired = self { true } else { false }
    }

    var error: (any Error)? {
        switch self {
        case .itself(let error): error
        case .expired(let error): error
        case .unobserved: nil
        }
    }

    /// The error that it rejects a promise with.
    var rejection: any Error { error ?? PromiseError.asCancellation }

    /// The state that it settles a promise with. An unhandled cancellation is not reported; the mark saves the core's
    /// deinit from examining the error.
    var outcome: StateWord { error == nil ? .rejectedAndHandled : .rejected }
}

extension PromiseError {
    /// Shared by all cancellations: each conversion of an enumeration to `any Error` makes a box, and a race cancels
    /// all promises but one.
    static let asCancellation: any Error = PromiseError.cancelled
}

extension PromiseCore {
    /// Rejects this core, which the request has cancelled.
    func reject(by request: CancellationRequest, at callSite: CallSite?) {
        reject(request.rejection, at: callSite, as: request.outcome)
    }
}
