import Reactor

/// The reports that `conf.logHandler` receives about legal but probably unintended situations.
public enum LogEvent: Sendable {
    /// The last resolver of a promise was released without settling it.
    case abandoned(Provenance)
    /// A rejected promise was released, and no `catch`, `recover`, `tap`, `pipe` or `hang` had received its error.
    /// Cancellations are not reported.
    ///
    /// Name and trace belong to the released promise. `callSite` is the line of the first rejected promise, if an
    /// initializer or `pending()` made that promise.
    case unhandledRejection(any Error, Provenance)
    /// A chain that ends in `cauterize` was rejected. Describes the promise on which `cauterize` was called, with the
    /// line of the call. `callSite` has the same meaning as in `unhandledRejection`.
    case cauterized(any Error, Provenance)
    /// A handler for `serve`, `serveAsync` or `serveHTTP` has failed, and there is no `onError` to receive the error.
    /// Cancellations and errors that peers cause are not reported: see `Listener.serve`.
    ///
    /// The request is the method and the route, such as `GET /notes/{id}`, or the path if there is no route, with the
    /// `Request.id` if a filter has set it. It is `nil` for a connection. The line is the call of `serve`; it is `nil`
    /// if `Router.respond` got the request without a server.
    case handlerFailed(any Error, request: String?, at: CallSite?)
    /// A loop ended, together with its thread or scope, and dropped this number of waiting handlers.
    case undeliveredHandlers(Int)
    /// On the main thread, `EventLoop.run()` returned while this number of handlers wait for promises. Only another
    /// thread or a callback can settle these promises; or they wait for one another, as calls of a `Limiter` do if its
    /// operations in progress wait for them. Nothing keeps the loop alive for them: take a `hold()`, or `hang` on the
    /// promise. The line made one of the promises. Reported once.
    case loopLeftHandlers(Int, at: CallSite?)
    /// For one second, nothing on this thread's loop could have settled the promise that `hang` waits for: no job,
    /// timer, descriptor or signal. Only another thread can settle it. Or each thread of a pool waits in a `hang`, and
    /// this one waits for another job of the pool.
    ///
    /// The line is the `hang`. Reported once per line.
    case hangStalled(Provenance, at: CallSite)
    /// A handler called `hang` for a promise that only a handler further down its stack settles, which cannot return
    /// before `hang` does. Or each thread of a pool waits, without a time limit, for a job in the pool's queue.
    ///
    /// The line is the `hang`. Reported once per line.
    case hangDeadlock(Provenance, at: CallSite)
    /// A handler that runs inside another handler's `hang` or turn calls `hang`, and the outer handler cannot return
    /// earlier. Server handlers that wait like this delay each other, however short each is: wait with `then`.
    ///
    /// The line is the `hang`. Reported once per line.
    case hangNested(Provenance, at: CallSite)
    /// A listener cannot accept, and pauses for 100 ms at a time: descriptors or memory have run out, or the kernel
    /// refused 64 connections in a row. Reported once until a connection is accepted.
    case acceptPaused(any Error)
    /// A descriptor cannot be watched for now, and the loop retries every 100 ms. The value is the call's error.
    /// Reported once per episode. Causes:
    /// - the kernel has no room for the registration (`ENOMEM`, or `ENOSPC` at `fs.epoll.max_user_watches`);
    /// - the descriptor was ready 256 times within one second, and each call found nothing or was refused;
    /// - the loop's own descriptors cannot be opened (`EMFILE`), and a `hang` on a guarantee waits.
    case watchPaused(any Error)
    /// No thread can be started for a `Guarantee { … }` with an async body, or for an actor without a custom executor
    /// that a loop's task calls. They wait, and the loop retries every 100 ms. The value is the error from
    /// pthread_create(3). Reported once per episode.
    case threadShortage(any Error)
    /// A descriptor was closed while the loop watched it, and a duplicate is still open. The watch, made at this line,
    /// has ended. Cancel a watch before you close its descriptor. Reported once per loop.
    case staleWatch(descriptor: CInt, at: CallSite?)
    /// A handler has blocked its loop for longer than `EventLoop.slowHandlerThreshold`. For an operator's handler, the
    /// second value describes its promise, if the promise is named or traced.
    case slowHandler(SlowHandler, Provenance?)
    /// An actor or a task uses the executor of an ended loop, so its jobs run on a separate thread. Reported once per
    /// loop.
    case taskOnEndedLoop
    /// A handler, timer or promise was attached to a loop that is never driven, so it will never run or settle.
    ///
    /// The loop belongs to a thread of Swift's pool, where an async function called a synchronous function that
    /// attached the handler; to an ended thread; or to the main thread under an async `main`. Reported once per line.
    case loopNotRunning(at: CallSite)
    /// A task waits forever for a guarantee that nothing can fulfill any more. The error tells whether the loop has
    /// ended, or the guarantee was cancelled or abandoned.
    case awaitStalled(Provenance, any Error)
    /// A loop that `EventLoop.spawn` started has ended with its thread, because it could no longer wait for events. The
    /// first value is its name.
    case loopFailed(String, any Error)
    /// The number of events that `Configuration.logLimit` has suppressed, with their kind and line. These are `nil`
    /// beyond the number of lines that are counted separately.
    case suppressed(Int, Kind?, at: CallSite?)

    /// The line that the event is about, if known: the last operator in a promise's trace, the line that made the
    /// promise, or the call.
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
        case .loopNotRunning(let callSite): LoopEvent.undrivenWork(callSite).description
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
    fileprivate var hint: String {
        callSite == nil && trace == nil ? "; conf.trace = true shows the lines of promises" : ""
    }

    fileprivate var ofRejection: String {
        guard let cauterizedAt else { return isUnknown ? "" : " (\(phrase)\(firstRejected))" }
        return " (\(phrase)\(firstRejected), cauterized at \(cauterizedAt))"
    }

    private var firstRejected: String {
        guard let callSite, let first = trace?.steps.first, first.callSite != callSite else { return "" }
        return "; the promise rejected first was made at \(callSite)"
    }
}
