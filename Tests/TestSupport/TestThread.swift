import Glibc

/// A thread of a test, which the test must join.
package final class TestThread: Sendable {
    private let handle: pthread_t

    /// - Parameter stackSize: in bytes; without it, the system's.
    package init(stackSize: Int? = nil, _ body: @escaping @Sendable () -> Void) {
        final class Box: Sendable {
            let body: @Sendable () -> Void
            init(_ body: @escaping @Sendable () -> Void) { self.body = body }
        }
        var handle = pthread_t()
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        if let stackSize { pthread_attr_setstacksize(&attributes, stackSize) }
        let code = pthread_create(
            &handle, &attributes,
            {
                Unmanaged<Box>.fromOpaque($0!).takeRetainedValue().body()
                return nil
            }, Unmanaged.passRetained(Box(body)).toOpaque())
        precondition(code == 0, "pthread_create failed with \(code)")
        self.handle = handle
    }

    /// Waits for the end of the thread; call it exactly once.
    package func join() { pthread_join(handle, nil) }

    /// Detaches the thread, instead of `join`.
    package func detach() { pthread_detach(handle) }

    /// Runs `body` on a new thread and waits for its result, and for the end of that thread's loop.
    @discardableResult
    package static func run<Value: Sendable>(
        stackSize: Int? = nil, _ body: @escaping @Sendable () -> Value
    ) -> Value {
        let result = Shared<Value?>(nil)
        TestThread(stackSize: stackSize) { result.value = body() }.join()
        return result.value!
    }
}

/// Spins until another thread has made `condition` true.
package func spin(until condition: () -> Bool) {
    var tries = 0
    while !condition() {
        tries += 1
        if tries > 100 { sched_yield() }
    }
}
