// A test, not a race: foreign threads beside a loop, a dispatch queue's and a SwiftNIO event loop's, as dispatchers and
// as threads that settle. Prints the results and exits with 1 if one was wrong.

import Dispatch
import Glibc
import NIOCore
import NIOPosix
import Promises
import Reactor

extension DispatchQueue: @retroactive Dispatcher {
    /// Runs `job` on the queue.
    public func dispatch(_ job: @escaping @Sendable () -> Void) { async(execute: job) }
}

struct NIODispatcher: Dispatcher {
    let loop: any NIOCore.EventLoop

    func dispatch(_ job: @escaping @Sendable () -> Void) { loop.execute(job) }
}

let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
let queue = DispatchQueue(label: "worker")
let home = pthread_self()

// Handlers that run elsewhere, and come back.
func isElsewhere(_ place: any Dispatcher) throws -> Bool {
    var cameBack = false
    let elsewhere = Promise.value(home)
        .map(on: place) { pthread_equal($0, pthread_self()) == 0 }
        .get { _ in cameBack = pthread_equal(home, pthread_self()) != 0 }
    return try hang(elsewhere, timeout: .seconds(5)) && cameBack
}

let onQueue = try isElsewhere(queue)
let onNIO = try isElsewhere(NIODispatcher(loop: group.next()))

// Promises that they settle, many at a time, and one after the other.
var sum = 0
for round in 0..<1000 {
    let pairs = (0..<3).map { _ in Promise<Int>.pending() }
    let resolvers = pairs.map(\.resolver)
    queue.async { resolvers[0].fulfill(round) }
    group.next().execute { resolvers[1].fulfill(round) }
    group.next().submit { round }.whenComplete { resolvers[2].resolve($0) }
    sum += try hang(when(fulfilled: pairs.map(\.promise)), timeout: .seconds(5)).reduce(0, +)
}

// And their promises, settled by our threads.
let theirs = group.next().makePromise(of: Int.self)
Promise.value(42).pipe { theirs.completeWith($0) }
let answer = try theirs.futureResult.wait()

try group.syncShutdownGracefully()
print("on a queue: \(onQueue), on a loop of SwiftNIO: \(onNIO), sum \(sum), answer \(answer)")
if !onQueue || !onNIO || sum != 3 * 499_500 || answer != 42 { exit(1) }
