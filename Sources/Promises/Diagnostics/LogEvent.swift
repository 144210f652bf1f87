import Reactor

/// The reports that `conf.logHandler` receives: situations that are legal but probably unintended.
public enum LogEvent: Sendable {
    /// The last resolver of a promise was released without settling it. The value describes the promise.
    case abandoned(Provenance)
    /// A rejected promise was released, and no `catch`, `recover`, `tap`, `pipe` or `hang` had received its error.
    ///
    /// Cancellations are not reported. Name and trace belong to the released promise; `callSite` to the promise that
    /// was rejected first, if an initializer or `pending()` made it.
    case unhandledRejection(any Error, Provenance)
    /// A chain that ends in `cauterize` was rejected. The value describes the promise on which it was called, and has
    /// the line of the call; its `callSite` belongs to the promise that was rejected first, if an initializer or
    /// `pending()` made it.
    case cauterized(any Error, Provenance)
    /// A handler of `serve`, `serveAsync` or `serveHTTP` has failed, and there is no `onError` to receive the error.
    /// Cancellations and what peers cause are not reported: see `Listener.serve`.
    ///
    /// The request is the method and the route, such as `GET /notes/{id}`, or the method and the path where no `Router`
    /// has found a route, and the `Request.id`, if a filter has set one; `nil` for a connection. The line is that of
    /// the `serve`; `nil` for a request that `Router.respond` got without a server.
    case handlerFailed(any Error, request: String?, at: CallSite?)
    /// A loop ended, with its thread or its scope, while handlers waited to run on it; they never will. The value is
    /// their number.
    case undeliveredHandlers(Int)
    /// `EventLoop.run()` of the main thread returned while handlers wait for promises that only another thread or a
    /// callback can settle, or for one another, such as calls of a `Limiter` whose operations in progress wait for it,
    /// too. Nothing keeps the loop alive for these: take a `hold()`, or `hang` on the promise.
    ///
    /// The values are the number of handlers, and the line that made one of the promises. Reported once.
    case loopLeftHandlers(Int, at: CallSite?)
    /// `hang` waits for a promise, and for a second nothing on this thread's loop could have settled it: no job, no
    /// timer, no descriptor, no signal. Only another thread can settle it. Or the `hang` is in a job of a pool, the
    /// promise waits for another job of that pool, and all threads of the pool wait in a `hang`.
    ///
    /// The values are the promise and the line of the `hang`. Reported once per line.
    case hangStalled(Provenance, at: CallSite)
    /// `hang` was called in a handler, directly or indirectly, and waits for a promise that only this handler settles,
    /// or another handler further down the stack. That handler cannot return before the `hang` does. Or each thread of
    /// a pool waits, without a time limit, for a job in the pool's queue.
    ///
    /// The values are the promise and the line of the `hang`. Reported once per line.
    case hangDeadlock(Provenance, at: CallSite)
    /// A handler calls `hang` that runs inside the `hang`, or another turn, of another handler, which cannot return
    /// before. Handlers of a server that wait like this hold each other up, however short each is: wait with `then`.
    ///
    /// The values are the promise and the line of the `hang`. Reported once per line.
    case hangNested(Provenance, at: CallSite)
    /// A listener cannot accept, and pauses for 100 ms at a time: descriptors or memory have run out, or the kernel
    /// refused 64 connections in a row. Reported once per episode, which ends when a connection is accepted.
    case acceptPaused(any Error)
    /// A descriptor cannot be watched for now, and the loop tries again every 100 ms. The value is the error of the
    /// call. Reported once per episode.
    ///
    /// There are three causes:
    /// - the kernel has no room for the registration (`ENOMEM`, or `ENOSPC` at `fs.epoll.max_user_watches`);
    /// - the descriptor was ready 256 times within a second, and each call found nothing or was refused;
    /// - a `hang` on a guarantee waits, and the loop's own descriptors cannot be opened (`EMFILE`).
    case watchPaused(any Error)
    /// No thread can be started for a `Guarantee { … }` with an async body, or for an actor without a custom executor
    /// that a task of a loop calls. Neither can fail, so they wait, and the loop tries again every 100 ms. The value is
    /// the error of pthread_create(3). Reported once per episode.
    case threadShortage(any Error)
    /// A descriptor was closed while the loop watched it, and a duplicate of it is still open. The watch has ended.
    /// Cancel a watch before you close its descriptor.
    ///
    /// The line is the one that made the watch, if that is known. Only the first case of each loop is reported.
    case staleWatch(descriptor: CInt, at: CallSite?)
    /// A handler has blocked its loop for longer than `EventLoop.slowHandlerThreshold`. For the handler of an operator,
    /// the second value describes its promise, if that has a name or was made while promises were traced.
    case slowHandler(SlowHandler, Provenance?)
    /// An actor or a task uses the executor of a loop that has ended. Its jobs run on a separate thread. Reported once
    /// per loop.
    case taskOnEndedLoop
    /// A handler, a timer, or a promise was attached to a loop that is never driven, so it will never run or settle.
    ///
    /// Such a loop belongs to a thread of Swift's pool, on which an async function has called the synchronous function
    /// that attached it, to a thread that has ended, or to the main thread under an async `main`. Reported once per
    /// line, which is the value.
    case loopNotRunning(at: CallSite)
    /// A task waits for a guarantee that nothing can fulfill any more, and never resumes. The error tells whether the
    /// loop has ended, or the guarantee was cancelled or abandoned.
    case awaitStalled(Provenance, any Error)
    /// A loop that `EventLoop.spawn` started ended, and its thread with it, because it could no longer wait for events.
    /// The first value is its name.
    case loopFailed(String, any Error)
    /// Events that `Configuration.logLimit` has suppressed: their number, their kind, and their line if known. Kind and
    /// line are `nil` for lines beyond the number that is counted separately.
    case suppressed(Int, Kind?, at: CallSite?)

    /// The line of code that the event is about, if known: the last operator of a promise's trace, or the line that
    /// made it; for other events, the call.
    public var callSite: CallSite? { key.callSite }

    /// The kinds of events, without their values.
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        /// See the event of the same name.
        case
            abandoned, unhandledRejection, cauterized, handlerFailed, undeliveredHandlers, loopLeftHandlers,
            hangStalled, hangDeadlock, hangNested, acceptPaused, watchPaused, threadShortage, staleWatch, slowHandler,
            taskOnEndedLoop, loopNotRunning, awaitStalled, loopFailed, suppressed
    }

    /// The kind of this event.
    public var kind: Kind { key.kind }
}

extension LogEvent: CustomStringConvertible {
    /// One line of text for people. Control characters, which a peer's error may contain, are escaped.
    public var description: String { text.inOneLine }

    private var text: String {
        switch self {
        case .abandoned(let promise):
            "\(promise) was abandoned: its last resolver was released without settling it"
        case .unhandledRejection(let error, let promise):
            "unhandled rejection: \(error)\(promise.ofRejection)\(promise.hint)"
        case .cauterized(let error, let promise):
            "cauterized: \(error)\(promise.ofRejection)"
        case .handlerFailed(let error, let request, let callSite):
            "a handler\(callSite.map { " of the server at \($0)" } ?? "") has failed: \(error)"
                + (request.map { " (\($0))" } ?? "")
        case .undeliveredHandlers(let count): LoopEvent.undelivered(count).description
        case .loopLeftHandlers(let count, let callSite): LoopEvent.leftHandlers(count, callSite).description
        case .hangStalled(let promise, let callSite):
            "hang at \(callSite) waits for \(promise), and nothing on this loop can settle it; only another thread still can"
        case .hangDeadlock(let promise, let callSite):
            "hang at \(callSite) waits for \(promise), which is settled by a handler that cannot return before the hang does"
        case .hangNested(let promise, let callSite):
            "hang at \(callSite) waits for \(promise) in a handler that runs inside another handler's hang, which cannot return "
                + "before; wait with then"
        case .acceptPaused(let error):
            "cannot accept connections for now: \(error)"
        case .watchPaused(let error): LoopEvent.watchPaused(error).description
        case .threadShortage(let error): LoopEvent.threadShortage(error).description
        case .staleWatch(let descriptor, let callSite): LoopEvent.staleWatch(descriptor, callSite).description
        case .taskOnEndedLoop: LoopEvent.taskOnEndedLoop.description
        case .loopNotRunning(let callSite): LoopEvent.unrunWork(callSite).description
        case .awaitStalled(let promise, let error):
            "a task waits for \(promise) and will never resume: \(error)\(promise.hint)"
        case .loopFailed(let name, let error): LoopEvent.loopFailed(name, error).description
        case .suppressed(let count, let kind, let callSite):
            "\(count) more event\(count == 1 ? "" : "s")\(kind.map { " of the kind \($0)" } ?? " of other kinds and lines")"
                + "\(callSite.map { " at \($0)" } ?? "") \(count == 1 ? "was" : "were") suppressed by conf.logLimit"
        case .slowHandler(let handler, let promise):
            "\(handler)\(promise.map { ", the handler of \($0)" } ?? "")"
                + (handler.kind == .promiseHandler && handler.callSite == nil ? promise?.hint ?? Provenance().hint : "")
        }
    }
}

extension Provenance {
    /// Tells how to find the line of a promise if none is known.
    fileprivate var hint: String {
        callSite == nil && trace == nil ? "; conf.trace = true shows the lines of promises" : ""
    }

    /// The known facts about a rejected promise, in brackets.
    fileprivate var ofRejection: String {
        guard let cauterizedAt else { return isUnknown ? "" : " (\(phrase)\(firstRejected))" }
        return " (\(phrase)\(firstRejected), cauterized at \(cauterizedAt))"
    }

    /// The origin of a rejection that came from another chain.
    private var firstRejected: String {
        guard let callSite, let first = trace?.steps.first, first.callSite != callSite else { return "" }
        return "; the promise rejected first was made at \(callSite)"
    }
}
