import Reactor

/// How far a dispatched promise is.
enum DispatchStage {
    case waiting, queued, running, following, ended

    /// Whether a dispatcher has the closure, or what the closure has returned is awaited.
    var isElsewhere: Bool { self == .queued || self == .running || self == .following }
}

/// How the loop of the thread that attached the handler counts its job.
enum DispatchCount {
    case none
    /// The loop stays alive until the job has returned.
    case ofPool
    /// Until the promise has settled, a `hang` on the loop knows that it may be woken.
    case ofOthers

    func begin(_ loop: EventLoop.Remote) {
        switch self {
        case .none: break
        case .ofPool: loop.beginExternalWork()
        case .ofOthers: loop.beginDispatchedJob()
        }
    }

    func end(_ loop: EventLoop.Remote) {
        switch self {
        case .none: break
        case .ofPool: loop.endExternalWork()
        case .ofOthers: loop.endDispatchedJob()
        }
    }
}
