import NIOCore
import NIOPosix
import Workload

/// SwiftNIO's rows as most users write them: `EventLoopFuture` and `@Sendable` closures.
public let plain: [Workload] = plainRows

/// The same with `assumeIsolated()`, which checks the loop once and then needs no `Sendable`.
public let isolated: [Workload] = isolatedRows

let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)

/// A row whose whole stretch is one task of the loop's thread, where futures are cheapest: no locks, no hops, and
/// callbacks that run inside the call that settles.
func onLoop(_ row: String, _ body: @escaping @Sendable (any EventLoop, Int) -> Void) -> Workload {
    Workload(row) { n in
        let loop = group.next()
        try! loop.submit { body(loop, n) }.wait()
    }
}

struct Failure: Error {}

/// For results that the callbacks of one loop accumulate.
final class Sum: @unchecked Sendable {
    var value = 0
}
