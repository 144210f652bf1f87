import ReactorLibc

/// An event that Reactor reports, and its handler, which the layer above may replace.
package enum LoopEvent: Sendable {
    /// A loop ended before this many jobs and handlers ran. They will never run.
    case undelivered(Int)
    /// The main thread's `run()` returned while this many handlers waited for other threads. One of the promises was
    /// made at this line.
    case leftHandlers(Int, CallSite?)
    /// A handler blocked a loop too long. `subject` is the layer above's information about the handler.
    case slowHandler(SlowHandler, subject: (any AnyObject & Sendable)?)

    /// A task's job arrived after its loop had ended, so another thread runs it.
    case taskOnEndedLoop
    /// A handler was attached at this line on a thread whose loop is not driven.
    case undrivenWork(CallSite)
    /// A loop that `spawn` started can no longer wait, and ends.
    case loopFailed(String, any Error)
    /// A descriptor cannot be watched for now; the loop retries. Reported once per episode.
    case watchPaused(any Error)
    /// No thread can be started for work that a loop waits for; the loop retries. Reported once per episode.
    case threadShortage(any Error)
    /// A descriptor was closed while it was watched from this line, if known. Reported once per loop.
    case staleWatch(CInt, CallSite?)

    package static let handler = LockedValue.ofProcess(
        ReportHandler<LoopEvent> { report in
            if limited.admit(report.key) { LoopEvent.print(report.description) }
        })

    /// The limit for programs without the layer above, which has its own limit.
    private static let limited: LimitedReports<Key> = {
        atexit { LoopEvent.limited.reportAllSuppressed() }
        return LimitedReports { key, count in
            let name = key.map { " of \($0.name)\($0.callSite.map { " at \($0)" } ?? "")" } ?? ""
            LoopEvent.print("\(count) more report\(count == 1 ? "" : "s")\(name) suppressed")
        }
    }()

    struct Key: Hashable {
        let name: String
        var callSite: CallSite?
    }

    var key: Key {
        switch self {
        case .undelivered: Key(name: "undelivered handlers")
        case .leftHandlers(_, let callSite): Key(name: "handlers that a run left waiting", callSite: callSite)
        case .slowHandler(let handler, _): Key(name: "slow handlers", callSite: handler.callSite)
        case .taskOnEndedLoop: Key(name: "tasks of ended loops")
        case .undrivenWork(let callSite): Key(name: "loops that are not driven", callSite: callSite)
        case .loopFailed: Key(name: "loops that failed")
        case .watchPaused: Key(name: "descriptors that cannot be watched for now")
        case .threadShortage: Key(name: "threads that cannot be started for now")
        case .staleWatch(_, let callSite): Key(name: "descriptors closed while watched", callSite: callSite)
        }
    }

    /// Does not block.
    package static func print(_ message: String) { LineWriter.standardError.write("swift-reactor: \(message)") }

    static func send(_ report: LoopEvent) { handler.withLock { $0 }.call(report) }
}

extension LoopEvent: CustomStringConvertible {
    /// One line for human readers, also for the layer above.
    package var description: String {
        switch self {
        case .undelivered(let count): "an event loop ended with \(count) undelivered handler\(count == 1 ? "" : "s")"
        case .leftHandlers(let count, let callSite):
            "run() returned while \(count) handler\(count == 1 ? " waits" : "s wait") for what only other threads or callbacks "
                + (callSite.map { "can settle, such as the promise made at \($0)" }
                    ?? "can settle, or for one another, as in a Limiter or a Pool whose places are all taken")
                + "; take a hold() until it has settled, or hang on it"
        case .slowHandler(let handler, _): handler.description
        case .taskOnEndedLoop: "a task ran on a thread of its own, since its event loop has ended"
        case .undrivenWork(let callSite):
            "work started at \(callSite) waits on a thread whose event loop is not driven: an async function leaves its caller's "
                + "thread, unless it is nonisolated(nonsending) or belongs to an actor that lives on the loop; elsewhere attach with "
                + "on:, or drive this loop, in an async main by driveAsyncMain()"
        case .watchPaused(let error): "cannot watch a descriptor for now: \(error)"
        case .threadShortage(let error): "cannot start a thread for now: \(error)"
        case .staleWatch(let descriptor, let callSite):
            "descriptor \(descriptor) was closed while it was watched\(callSite.map { " at \($0)" } ?? ""); cancel the watch first"
        case .loopFailed(let name, let error): "the event loop \"\(name)\" ended after a failure: \(error)"
        }
    }
}
