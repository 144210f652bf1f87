import NIOCore
import NIOPosix
import Promises
import Reactor
import ReactorNIO
import Testing

/// Promises together with SwiftNIO's loops.
@Suite struct NIOTests {
    private struct Flaw: Error, Equatable {}

    private let group = MultiThreadedEventLoopGroup.singleton

    @Test func handlersRunOnALoopOfNIO() throws {
        let theirs = group.next()
        try Reactor.EventLoop.withLoop { loop throws in
            let home = loop.remote
            var isBack = false
            let sum = Promise.value(20).map(on: theirs.dispatcher) { number in theirs.inEventLoop ? number + 1 : -1 }
                .get { _ in isBack = Reactor.EventLoop.current.remote == home }
            #expect(try hang(sum, timeout: .seconds(60)) == 21)
            #expect(isBack)
        }
    }

    @Test func aFutureBecomesAPromise() throws {
        let theirs = group.next()
        try Reactor.EventLoop.withLoop { _ throws in
            let value = theirs.submit { 7 }.promise().map { $0 + 1 }
            #expect(try hang(value, timeout: .seconds(60)) == 8)
            let failure = theirs.submit { () throws -> Int in throw Flaw() }.promise()
            #expect(throws: Flaw()) { try hang(failure, timeout: .seconds(60)) }
        }
    }

    @Test func aPromiseBecomesAFuture() async throws {
        let theirs = group.next()
        let ours = try Reactor.EventLoop.spawn(name: "ours")
        let number = await Guarantee(on: ours) { after(.milliseconds(1)).map { 3 }.asPromise() }.value
        #expect(try await number.future(on: theirs).map { theirs.inEventLoop ? $0 : -1 }.get() == 3)
        let failure = await Guarantee(on: ours) { Promise<Int>(error: Flaw()) }.value
        await #expect(throws: Flaw()) { try await failure.future(on: theirs).get() }
        ours.stop()
    }

    @Test func aPromiseOfALoopThatEndsFailsItsFuture() async throws {
        let ours = try Reactor.EventLoop.spawn(name: "ours")
        let waiting = await Guarantee(on: ours) { after(.seconds(3600)).map { 3 }.asPromise() }.value
        let future = waiting.future(on: group.next())
        ours.stop()
        await #expect(throws: (any Error).self) { try await future.get() }
    }
}
