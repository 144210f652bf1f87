/// What the library reports through `conf.logHandler`: things that are legal but probably not meant.
public enum LogEvent: Sendable {
    /// The last resolver of a promise went without settling it; where the promise was made.
    case abandoned(Origin?)
    /// A rejected promise died and nobody had been told of its error: no `catch`, `recover`, `tap`, `pipe` or `hang`.
    /// Cancellation is not reported. Where the promise was made that was rejected first, if it was made by hand.
    case unhandledRejection(any Error, Origin?)
    /// A loop ended, with its thread or its scope, while so many handlers still waited to run on it; they never will.
    case undeliveredHandlers(Int)
    /// `hang` waits for a promise, and nothing on this thread's loop could ever settle it: no job, no timer, no
    /// descriptor, no signal. Only another thread still can. What it waits for, and the line of the `hang`.
    case hangCannotEnd(String, Origin)
    /// A listener could not accept for want of descriptors or memory and pauses; once an episode.
    case acceptPaused(any Error)
}

extension LogEvent: CustomStringConvertible {
    /// One line for people.
    public var description: String {
        switch self {
        case .abandoned(let origin):
            "the promise made at \(origin.text) was abandoned: its last resolver went without settling it"
        case .unhandledRejection(let error, let origin):
            "unhandled rejection: \(error)" + (origin.map { " (promise made at \($0))" } ?? "")
        case .undeliveredHandlers(let count):
            "an event loop ended with \(count) undelivered handler\(count == 1 ? "" : "s")"
        case .hangCannotEnd(let what, let origin):
            "hang at \(origin) waits for \(what), and nothing on this loop can settle it; only another thread still can"
        case .acceptPaused(let error):
            "cannot accept connections for now: \(error)"
        }
    }
}

extension Origin? {
    fileprivate var text: String { self?.description ?? "an unknown line" }
}

enum Diagnostics {
    static func abandoned(_ origin: Origin?) {
        if conf.abandoned == .trap { fatalError(LogEvent.abandoned(origin).description) }
        conf.log(.abandoned(origin))
    }

    static func unhandled(_ error: any Error, _ origin: Origin?) {
        // An abandoned promise has been reported when it was abandoned.
        if error.isCancelled || error as? PromiseError == .abandoned { return }
        conf.log(.unhandledRejection(error, origin))
    }
}
