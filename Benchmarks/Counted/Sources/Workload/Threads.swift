import CSupport
import Glibc

/// Binds the calling thread, and the threads that it starts later, to one processor. Once.
public let pinnedToOneProcessor: Void = {
    let error = bench_pin()
    precondition(error == 0, "sched_setaffinity: \(error)")
}()

private final class Body {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
}

/// Starts a thread that the caller must join.
public func startThread(_ run: @escaping @Sendable () -> Void) -> pthread_t {
    var thread = pthread_t()
    let body = Unmanaged.passRetained(Body(run)).toOpaque()
    let error = pthread_create(
        &thread, nil,
        {
            Unmanaged<Body>.fromOpaque($0!).takeRetainedValue().run()
            return nil
        }, body)
    precondition(error == 0, "pthread_create: \(error)")
    return thread
}
