// Like fetch-loop, by AsyncHTTPClient with one thread, through its futures.
import AsyncHTTPClient
import Glibc
import NIOCore
import NIOPosix

func nanoseconds(_ clock: clockid_t) -> Int {
    var time = timespec()
    clock_gettime(clock, &time)
    return time.tv_sec * 1_000_000_000 + time.tv_nsec
}

let (address, requests) = (CommandLine.arguments[1], Int(CommandLine.arguments[2])!)
let concurrency = Int(CommandLine.arguments[3])!
let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
var configuration = HTTPClient.Configuration()
configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = concurrency
configuration.httpVersion = .http1Only
let client = HTTPClient(eventLoopGroupProvider: .shared(group), configuration: configuration)

/// One after another, `count` in all.
func run(_ count: Int, on loop: any EventLoop) -> EventLoopFuture<Void> {
    if count == 0 { return loop.makeSucceededVoidFuture() }
    return client.get(url: address).hop(to: loop).flatMap { response in
        precondition(response.status == .ok && response.body?.readableBytes == 14)
        return run(count - 1, on: loop)
    }
}

func run(_ count: Int) throws {
    let loop = group.next()
    let lanes = (0..<concurrency).map { lane in
        loop.flatSubmit { run(count / concurrency + (lane < count % concurrency ? 1 : 0), on: loop) }
    }
    try EventLoopFuture.andAllSucceed(lanes, on: loop).wait()
}

try run(requests / 10)
let (cpu, wall) = (nanoseconds(CLOCK_PROCESS_CPUTIME_ID), nanoseconds(CLOCK_MONOTONIC))
try run(requests)
print("RESULT", requests, nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - cpu, nanoseconds(CLOCK_MONOTONIC) - wall)
try client.syncShutdown()
