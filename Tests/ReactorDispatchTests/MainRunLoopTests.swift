import Dispatch
import Foundation
import Promises
import Reactor
import ReactorDispatch
import ReactorIO
import XCTest

/// The main thread's loop under XCTest's own main run loop. XCTest runs its tests on the main thread.
final class MainRunLoopTests: XCTestCase {
    func testExpectationsLetHandlersTimersAndStreamsRun() throws {
        let carrier = try EventLoop.current.carryByMainRunLoop()
        defer { carrier.cancel() }
        let (handler, timer, stream, mail, queue) = (
            expectation(description: "handler"), expectation(description: "timer"), expectation(description: "stream"),
            expectation(description: "mail"), expectation(description: "queue")
        )
        Promise.value(1).done { _ in handler.fulfill() }.cauterize()
        after(.milliseconds(1)).done { timer.fulfill() }
        let (one, other) = try Connection.pair()
        other.readLine().done { _ in stream.fulfill() }.cauterize()
        one.write("line\n").cauterize()
        let remote = EventLoop.current.remote
        DispatchQueue.global().async { remote.submit { mail.fulfill() } }
        Promise.value(2).map(on: DispatchQueue.global()) { _ in
            dispatchPrecondition(condition: .notOnQueue(.main))
        }.done {
            dispatchPrecondition(condition: .onQueue(.main))
            queue.fulfill()
        }.cauterize()
        wait(for: [handler, timer, stream, mail, queue], timeout: 60)
        one.abort()
        other.abort()
    }

    func testWhatACallbackOfTheRunLoopAttachesRuns() throws {
        let carrier = try EventLoop.current.carryByMainRunLoop()
        let done = expectation(description: "a handler that was attached between two turns")
        // Nothing makes the descriptor readable: the observer turns the loop.
        DispatchQueue.main.async {
            Promise.value(1).done { _ in after(.milliseconds(1)).done { done.fulfill() } }.cauterize()
        }
        wait(for: [done], timeout: 60)
        XCTAssertTrue(carrier.isActive && carrier.cancel() && !carrier.isActive && !carrier.cancel())
    }

    func testJobsThatNeverEndLetTheRunLoopContinue() throws {
        let carrier = try EventLoop.current.carryByMainRunLoop()
        defer { carrier.cancel() }
        let done = expectation(description: "a block of the main queue")
        var jobs = 0
        // Without end but for a carrier that never returns.
        func next() {
            jobs += 1
            if jobs < 1_000_000 { Guarantee.value.done { next() } }
        }
        next()
        DispatchQueue.main.async { done.fulfill() }
        wait(for: [done], timeout: 60)
        XCTAssertLessThan(jobs, 1_000_000)
        jobs = 1_000_000
    }

    func testACancelledCarrierTurnsNothing() throws {
        let carrier = try EventLoop.current.carryByMainRunLoop()
        carrier.cancel()
        let turns = EventLoop.current.metrics.turns
        let done = expectation(description: "a round of the run loop")
        DispatchQueue.main.async { DispatchQueue.main.async { done.fulfill() } }
        wait(for: [done], timeout: 60)
        XCTAssertEqual(EventLoop.current.metrics.turns, turns)
    }
}
