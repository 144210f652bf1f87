// Both Promises and Logging have a type LogEvent.

import Logging
import Promises
import Reactor

extension Configuration {
    /// Sends the library's reports to `logger`, instead of standard error: see `LogEvent.log(to:)`.
    ///
    /// ```swift
    /// conf.log(to: Logger(label: "reactor"))
    /// ```
    ///
    /// `conf.logLimit` applies, as to every handler: by default ten events a second of each kind and source line, and a
    /// `suppressed` event with the number of the others. The log handler of `logger` runs on the thread where the event
    /// occurs, usually a loop's: a handler that blocks also blocks the loop.
    /// - Parameter level: the level of each kind of event.
    public func log(
        to logger: Logger, level: @escaping @Sendable (Promises.LogEvent.Kind) -> Logger.Level = { $0.level }
    ) {
        logHandler = { event in event.log(to: logger, level: level(event.kind)) }
    }
}

extension Promises.LogEvent {
    /// Logs this event: its text as the message, the rest as metadata.
    /// - Parameters:
    ///   - logger: the destination.
    ///   - level: `nil` for the level of the event's kind.
    public func log(to logger: Logger, level: Logger.Level? = nil) {
        logger.log(
            level: level ?? kind.level, "\(self)", metadata: metadata, source: "swift-reactor",
            file: callSite.map { "\($0)" } ?? "swift-reactor", function: "", line: 0)
    }

    /// The details of the event:
    /// - `event`: its kind;
    /// - `origin`: the source line, as `Module/File.swift:12`;
    /// - `promise`: the name of the promise, if it has one;
    /// - `request`: of a failed handler, the method and the route;
    /// - `error`: the error, and `error.type` its type.
    public var metadata: Logger.Metadata {
        var metadata: Logger.Metadata = ["event": "\(kind.rawValue)"]
        if let callSite { metadata["origin"] = "\(callSite)" }
        if let name = provenance?.name { metadata["promise"] = "\(name)" }
        if case .handlerFailed(_, let request?, _) = self { metadata["request"] = "\(request)" }
        if let error {
            metadata["error"] = "\(error)"
            metadata["error.type"] = "\(type(of: error))"
        }
        return metadata
    }

    private var provenance: Provenance? {
        switch self {
        case .abandoned(let promise), .unhandledRejection(_, let promise), .cauterized(_, let promise),
            .hangStalled(let promise, _), .hangDeadlock(let promise, _), .hangNested(let promise, _),
            .awaitStalled(let promise, _):
            promise
        case .slowHandler(_, let promise): promise
        default: nil
        }
    }

    private var error: (any Error)? {
        switch self {
        case .unhandledRejection(let error, _), .cauterized(let error, _), .acceptPaused(let error),
            .watchPaused(let error), .threadShortage(let error), .awaitStalled(_, let error), .loopFailed(_, let error),
            .handlerFailed(let error, _, _):
            error
        default: nil
        }
    }
}

extension Promises.LogEvent.Kind {
    /// The default level of this event's kind: `critical` if a loop has failed, `error` if something will never happen,
    /// `notice` for errors that were deliberately discarded, and `warning` for the others.
    public var level: Logger.Level {
        switch self {
        case .loopFailed: .critical
        case .abandoned, .unhandledRejection, .undeliveredHandlers, .loopLeftHandlers, .hangDeadlock, .loopNotRunning,
            .awaitStalled, .handlerFailed:
            .error
        case .cauterized: .notice
        case .hangStalled, .hangNested, .acceptPaused, .watchPaused, .threadShortage, .staleWatch, .slowHandler,
            .taskOnEndedLoop,
            .suppressed:
            .warning
        }
    }
}
