import Glibc
import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

/// A listener that is not in the poller when its loop ends: everything that waits for it is still notified.
@Suite struct ListenerAtLoopEndTests {
    @Test(arguments: [false, true])
    func aConnectionIsRunning(isClosed: Bool) throws {
        var served: Promise<DrainResult>?
        try EventLoop.withLoop { loop throws in
            let listener = try Listener.bind("127.0.0.1:0")
            var hasStarted = false
            let service = listener.serve(ServeOptions(maxConnections: 1)) { connection in
                hasStarted = true
                return connection.read().asVoid()
            }
            service.ignoringErrors()
            served = service
            let client = connect(to: listener.localAddress)
            try loop.run(until: { hasStarted })
            if isClosed { listener.close() }
            withExtendedLifetime(client) {}
        }
        expectEqual(served?.isRejected, true)
    }
}
