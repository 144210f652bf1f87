import Reactor

/// What the library reports through `conf.logHandler`: things that are legal but probably not meant.
public enum LogEvent: Sendable {
    /// The last resolver of a promise went without settling it. Which promise.
    case abandoned(Provenance)
    /// A rejected promise died and nobody had been told of its error: no `catch`, `recover`, `tap`, `pipe` or `hang`.
    /// Cancellation is not reported. Name and trace are of the promise that died, the origin is of the one that was
    /// rejected first, if that was made by hand.
    case unhandledRejection(any Error, Provenance)
    /// A chain that ends in `cauterize` was rejected. What is known of the promise that it was called on; the origin is of
    /// the one that was rejected first, if that was made by hand.
    case cauterized(any Error, Provenance)
    /// A loop ended, with its thread or its scope, while so many handlers still waited to run on it; they never will.
    case undeliveredHandlers(Int)
    /// `hang` waits for a promise, and for a second nothing on this thread's loop could have settled it: no job, no timer, no
    /// descriptor, no signal. Only another thread still can. What it waits for, and the line of the `hang`; once a line.
    case hangStalled(Provenance, at: CallSite)
    /// `hang` was called in a handler, directly or not, and waits for a promise that only this handler settles, or another one
    /// that hangs further down the stack: it cannot return before the hang does. What it waits for, and the line of the `hang`;
    /// once a line.
    case hangDeadlock(Provenance, at: CallSite)
    /// A listener cannot accept and pauses, 100 ms at a time: descriptors or memory have run out, or the kernel refused 64
    /// connections in a row. Once an episode, which ends when a connection is accepted.
    case acceptPaused(any Error)
    /// A descriptor cannot be watched for now, and the loop tries again every 100 ms: the kernel has no room for the
    /// registration (`ENOMEM`, or `ENOSPC` at `fs.epoll.max_user_watches`), or the descriptor was ready 256 times within a
    /// second, and each call found nothing or was refused. Once an episode, with the error of the call.
    case watchPaused(any Error)
    /// A descriptor was closed while the loop watched it, and a copy of it lives on: cancel a watch before you close its
    /// descriptor. The watch is over. The line that made it, if that is known. The first of each loop.
    case staleWatch(descriptor: CInt, at: CallSite?)
    /// A handler has held its loop for longer than `EventLoop.slowHandlerThreshold`. Of a promise's operator, what is known
    /// of that promise, if it has a name or was made while promises were traced.
    case slowHandler(SlowHandler, Provenance?)
    /// An actor or a task has an executor of a loop that has ended: its jobs run on a thread that is there for these. Once an
    /// executor.
    case taskOnEndedLoop
    /// A handler, a timer, or a promise of the loop's waits on a thread whose loop nobody drives: a thread of Swift's pool, on
    /// which an async function has called the synchronous one that began it, a thread that has ended, or the main thread under an
    /// async `main`. Nothing will come of it. The line; once each.
    case undrivenLoop(at: CallSite)
    /// A task waits for a guarantee that nobody is left to fulfill, and never goes on: its loop has ended, or it was cancelled or
    /// abandoned, as the error says.
    case awaitStalled(Provenance, any Error)
    /// A loop of `EventLoop.spawn` ended, and its thread with it, since it could not wait for anything any more. Its name.
    case loopFailed(String, any Error)
    /// Events that `Configuration.logLimit` has kept from the handler: how many, of which kind, and of which line if that
    /// is known. Kind and line are `nil` for those of so many lines that they are not kept apart.
    case suppressed(Int, Kind?, at: CallSite?)

    /// What an event is about.
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        /// The kind of the event of the same name.
        case abandoned, unhandledRejection, cauterized, undeliveredHandlers, hangStalled, hangDeadlock
        /// The kind of the event of the same name.
        case acceptPaused, watchPaused, staleWatch, slowHandler, taskOnEndedLoop, undrivenLoop, awaitStalled
        /// The kind of the event of the same name.
        case loopFailed, suppressed
    }

    /// What this event is about.
    public var kind: Kind {
        switch self {
        case .abandoned: .abandoned
        case .unhandledRejection: .unhandledRejection
        case .cauterized: .cauterized
        case .undeliveredHandlers: .undeliveredHandlers
        case .hangStalled: .hangStalled
        case .hangDeadlock: .hangDeadlock
        case .acceptPaused: .acceptPaused
        case .watchPaused: .watchPaused
        case .staleWatch: .staleWatch
        case .slowHandler: .slowHandler
        case .taskOnEndedLoop: .taskOnEndedLoop
        case .undrivenLoop: .undrivenLoop
        case .awaitStalled: .awaitStalled
        case .loopFailed: .loopFailed
        case .suppressed: .suppressed
        }
    }
}

extension LogEvent: CustomStringConvertible {
    /// One line for people.
    public var description: String {
        switch self {
        case .abandoned(let promise):
            "\(promise) was abandoned: its last resolver went without settling it"
        case .unhandledRejection(let error, let promise):
            "unhandled rejection: \(error)\(promise.ofRejection)"
        case .cauterized(let error, let promise):
            "cauterized: \(error)\(promise.ofRejection)"
        case .undeliveredHandlers(let count):
            LoopEvent.undelivered(count).description
        case .hangStalled(let promise, let origin):
            "hang at \(origin) waits for \(promise), and nothing on this loop can settle it; only another thread still can"
        case .hangDeadlock(let promise, let origin):
            "hang at \(origin) waits for \(promise), which is settled by a handler that cannot return before the hang does"
        case .acceptPaused(let error):
            "cannot accept connections for now: \(error)"
        case .watchPaused(let error): LoopEvent.describe(watchPaused: error)
        case .staleWatch(let descriptor, let origin): LoopEvent.staleWatch(descriptor, origin).description
        case .taskOnEndedLoop: LoopEvent.taskOnEndedLoop.description
        case .undrivenLoop(let origin):
            LoopEvent.undriven(origin).description
        case .awaitStalled(let promise, let error):
            "a task waits for \(promise), and never goes on: \(error)"
        case .loopFailed(let name, let error):
            "the event loop \"\(name)\" ended, since it could not go on: \(error)"
        case .suppressed(let count, let kind, let origin):
            "\(count) more event\(count == 1 ? "" : "s")\(kind.map { " of the kind \($0)" } ?? " of other kinds and lines")"
                + "\(origin.map { " at \($0)" } ?? "") \(count == 1 ? "was" : "were") left out, by the limit of conf.logLimit"
        case .slowHandler(let handler, let promise):
            "\(handler)\(promise.map { ": that of \($0)" } ?? "")"
        }
    }
}

extension Provenance {
    /// What is known of a promise that was rejected, in brackets.
    fileprivate var ofRejection: String { isUnknown ? "" : " (\(phrase)\(firstRejected))" }

    /// Of a rejection that came in from elsewhere: where from.
    private var firstRejected: String {
        guard let origin, let first = trace?.steps.first, first.origin != origin else { return "" }
        return "; the promise rejected first was made at \(origin)"
    }
}
