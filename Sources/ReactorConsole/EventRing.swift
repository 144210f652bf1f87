import Promises
import Reactor
import ReactorIO
import ReactorLibc

/// The process's last events, without values. Any thread may add one.
final class EventRing: Sendable {
    struct Event: Sendable {
        /// Counted from the console's start.
        let number: Int
        /// Seconds since 1970.
        let time: Int
        let kind: LogEvent.Kind
        let text: String
        let callSite: CallSite?
    }

    static var capacity: Int { 256 }

    private struct Ring: Sendable {
        var events: [Event] = []
        var count = 0
    }

    private let ring = LockedValue(Ring())

    func add(_ event: LogEvent) {
        let text = event.withoutValues
        ring.withLock { ring in
            let made = Event(
                number: ring.count, time: time(nil), kind: event.kind, text: text, callSite: event.callSite)
            if ring.events.count == Self.capacity { ring.events.removeFirst() }
            ring.events.append(made)
            ring.count += 1
        }
    }

    /// The kept events, newest first, and the count of all.
    var latest: (events: [Event], count: Int) {
        ring.withLock { ring in (ring.events.reversed(), ring.count) }
    }
}

extension LogEvent {
    /// The event in words. An error appears only as its type, and a system call's error also with call and number. Its
    /// text, like a request's path, may contain a peer's bytes or a secret.
    fileprivate var withoutValues: String {
        switch self {
        case .abandoned(let promise): "\(promise.short) was abandoned by its last resolver"
        case .unhandledRejection(let error, let promise): "no handler for \(Self.name(error)) of \(promise.short)"
        case .cauterized(let error, let promise): "cauterized \(Self.name(error)) of \(promise.short)"
        case .handlerFailed(let error, _, _): "a server's handler failed with \(Self.name(error))"
        case .undeliveredHandlers(let count): "a loop ended with \(count) handlers that had not run"
        case .loopLeftHandlers(let count, _): "run() returned while \(count) handlers wait for other threads"
        case .hangStalled(let promise, _): "hang waits for \(promise.short), which only another thread can settle"
        case .hangDeadlock(let promise, _): "hang waits for \(promise.short), which its own handler must settle"
        case .hangNested(let promise, _): "hang inside another handler's hang waits for \(promise.short)"
        case .acceptPaused(let error): "cannot accept connections for now: \(Self.name(error))"
        case .watchPaused(let error): "cannot watch a descriptor for now: \(Self.name(error))"
        case .threadShortage(let error): "cannot start a thread for now: \(Self.name(error))"
        case .staleWatch(let descriptor, _): "descriptor \(descriptor) was closed while it was watched"
        case .slowHandler(let handler, _): "a \(handler.kind.rawValue) held its loop for \(handler.duration)"
        case .taskOnEndedLoop: "a task uses the executor of a loop that has ended"
        case .loopNotRunning: "a handler waits on a loop that no thread drives"
        case .awaitStalled(let promise, let error): "a task waits for \(promise.short), but \(Self.name(error))"
        case .loopFailed(_, let error): "a loop can no longer wait, and has ended: \(Self.name(error))"
        case .suppressed(let count, let kind, _): "\(count) more of \(kind?.rawValue ?? "other kinds")"
        }
    }

    private static func name(_ error: any Error) -> String {
        let type = "\(Swift.type(of: error))"
        if let error = error as? SystemError { return "\(type) (\(error.call), errno \(error.code))" }
        return type
    }
}

extension Provenance {
    /// `Promise<Int> "login"`
    fileprivate var short: String { (type ?? "a promise") + (name.map { " \"\($0)\"" } ?? "") }
}
