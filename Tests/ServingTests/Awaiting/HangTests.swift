@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

struct HangTests {
    @Test(.inRealTime) func aSettledPromiseNeedsNoTurnAndNoSystemCall() throws {
        let loop = EventLoop.current
        expectEqual(try hang(Promise.value(1)), 1)
        expect(Promise<Int>(error: Flaw(2)), failsWith: Flaw(2))
        expectEqual(hang(Guarantee.value(3)), 3)
        expectEqual(loop.metrics.turns, 0)
        expectEqual(loop.metrics.systemCalls, [:])
    }

    /// A guarantee has no error to report it.
    @Test func onAGuaranteeItGoesOnWithoutDescriptors() throws {
        var syscalls = Syscalls()
        syscalls.eventCreate = { -Int(EMFILE) }
        let lines = try logged {
            try EventLoop.withLoop(syscalls: syscalls) { loop throws in
                let due = loop.now.advanced(by: .milliseconds(30))
                hang(after(.milliseconds(30)))
                expect(loop.now >= due)
            }
        }
        expectEqual(lines, ["cannot watch a descriptor for now: eventfd: Too many open files (EMFILE)"])
    }

    @Test(.inLoop) func drivesTimersAndJobs() throws {
        let loop = EventLoop.current
        var others = 0
        loop.schedule(every: .seconds(1)) { others += 1 }
        loop.enqueue { others += 100 }
        hang(after(.milliseconds(3500)))
        expectEqual(others, 103)
        expectEqual(loop.now.nanoseconds, 3_500_000_000)
    }

    @Test(.inLoop) func theOuterPromiseSettlesInsideTheInnerHang() throws {
        let (outer, resolver) = Promise<Int>.pending()
        var sawOuter = false
        after(.seconds(1)).done {
            hang(after(.seconds(1)).done { resolver.fulfill(1) }.then { after(.seconds(1)) })
            sawOuter = outer.isFulfilled
        }
        expectEqual(try hang(outer), 1)
        expect(sawOuter)
    }

    @Test(.inLoop) func aHandlerThatCancelsEndsIt() throws {
        let loop = EventLoop.current
        let promise = after(.seconds(3600)).asPromise().map { 1 }
        after(.seconds(1)).done { promise.cancel() }
        expect(promise, failsWith: PromiseError.cancelled)
        expect(loop.now.nanoseconds == 1_000_000_000 && loop.nextDeadline == nil)
    }

    @Test(.inLoop) func aNestedHangKeepsWhatItWaitsFor() throws {
        let loop = EventLoop.current
        let shared = after(.seconds(5)).map { 8 }
        let child = shared.map { $0 + 1 }
        var seen = 0
        after(.seconds(1)).done {
            after(.seconds(1)).done { child.cancel() }
            seen = hang(shared)
        }
        hang(after(.seconds(20)))
        expect(seen == 8 && child.isPending && shared.isFulfilled)
        expectEqual(loop.now.nanoseconds, 20_000_000_000)
    }

    @Test(.inRealTime) func anotherThreadMayCancelWhatItWaitsFor() throws {
        let promise = after(.seconds(3600)).asPromise().map { 1 }
        let thread = TestThread { promise.cancel() }
        expect(promise, failsWith: PromiseError.cancelled)
        thread.join()
    }

    /// The log says that only another thread can settle it: once, however often the loop wakes.
    @Test(.inRealTime, .ownThread) func anotherThreadSettlesAndTheLogHasSaidThatOnlyItCan() throws {
        let remote = EventLoop.current.remote
        let line: UInt = #line + 1
        let (promise, resolver) = Promise<Int>.pending()
        let text =
            "hang at \(#fileID):\(line + 16) waits for the Promise<Int> made at \(#fileID):\(line), "
            + "and nothing on this loop can settle it; only another thread still can"
        let gate = Gate()
        let recorder = LogRecorder(where: { $0.description == text }, reaction: { _ in gate.open() })
        let thread = TestThread {
            // Until the log line: so the loop sleeps, or is about to.
            gate.wait()
            let woken = Gate()
            for _ in 0..<10 {
                remote.submit { woken.open() }
                woken.wait()
            }
            resolver.fulfill(1)
        }
        expectEqual(try hang(promise), 1)
        thread.join()
        recorder.stop()
        expectEqual(recorder.lines, [text])
    }
}

struct HangTimeoutTests {
    @Test(.inLoop) func throwsWhenTheTimeIsUpAndListensNoMore() throws {
        let loop = EventLoop.current
        let work = after(.seconds(100_000)).map { 1 }
        #expect(throws: PromiseError.timedOut) { try hang(work, timeout: .seconds(86_400)) }
        expectEqual(loop.now.nanoseconds, 86_400_000_000_000)
        expect(work.isPending, "a time limit does not cancel")
        // The only one that waits for it now.
        work.map { $0 }.cancel()
        expectEqual(loop.nextDeadline, nil)
    }

    @Test(.inLoop) func aPromiseThatSettlesInTimeLeavesNoTimer() throws {
        let loop = EventLoop.current
        let promise = after(.seconds(1)).map { 1 }
        expectEqual(try hang(promise, timeout: .seconds(2)), 1)
        expect(!loop.isAlive)
        expectEqual(loop.now.nanoseconds, 1_000_000_000)
    }

    @Test(.inLoop) func whatIsReadyIsDoneEvenInNoTime() throws {
        let promise = Promise.value(1).map { $0 + 1 }.map { $0 + 1 }
        expectEqual(try hang(promise, timeout: .zero), 3)
    }

    @Test func aRejectionAfterTheTimeIsUpIsStillReported() {
        let line: UInt = #line + 2
        let lines = loggedInLoop { _ in
            let (promise, resolver) = Promise<Int>.pending()
            #expect(throws: PromiseError.timedOut) { try hang(promise, timeout: .seconds(1)) }
            resolver.reject(Flaw(1))
        }
        expectEqual(lines.last, "unhandled rejection: Flaw(number: 1) (promise made at \(#fileID):\(line))")
        // Only another thread could have settled it: this is logged at the end of the time.
        expectEqual(lines.count, 2)
        expectEqual(
            lines.first?.hasPrefix(
                "hang at \(#fileID):\(line + 1) waits for the Promise<Int> made at \(#fileID):\(line), and nothing on"),
            true)
    }

    @Test func aRejectionThatOthersHaveSeenIsNotReported() throws {
        let lines = try loggedInLoop { loop throws in
            let (promise, resolver) = Promise<Int>.pending()
            #expect(throws: PromiseError.timedOut) { try hang(promise, timeout: .seconds(1)) }
            var seen = false
            promise.catch { _ in seen = true }
            #expect(throws: PromiseError.timedOut) { try hang(promise, timeout: .seconds(1)) }
            resolver.reject(Flaw(1))
            try loop.run()
            expect(seen)
        }
        expectEqual(lines.filter { !$0.hasPrefix("hang at ") }, [])
    }

    /// Handlers of a server, say, whose clients come one after the other: the first waits for the last.
    @Test(.inLoop, arguments: [1, 2, 20]) func handlersThatHoldEachOtherUp(count: Int) throws {
        let loop = EventLoop.current
        var longest = Duration.zero
        let lines = logged {
            let clients = (1...count).map { number in
                after(.milliseconds(100 * number)).done {
                    let began = loop.now
                    hang(after(.milliseconds(300)), "HangTests.swift", UInt(1000 + count))
                    longest = max(longest, began.duration(to: loop.now))
                }
            }
            hang(when(guarantees: clients))
        }
        expectEqual(longest, .milliseconds(300 + 100 * (count - 1)))
        expectEqual(lines.count, count == 1 ? 0 : 1)
        for line in lines {
            expect(line.hasPrefix("hang at HangTests.swift:\(1000 + count) waits for a Guarantee<()> "), "\(line)")
            expect(line.contains("inside another handler's hang"))
        }
    }
}

/// `var runs = 0; p.done { runs += 1 }; while runs == 0 { … }`: the optimiser must not assume that `runs` is never
/// written.
struct CapturedVariableTests {
    @Test(.inLoop) func everyOperatorOfASettledPromise() throws {
        var runs = 0
        Promise.value(1).done { _ in runs += 1 }.orFail()
        Promise.value(1).map { _ in runs += 1 }.orFail()
        Promise.value(1).then { _ -> Promise<Void> in
            runs += 1
            return .value
        }.orFail()
        Promise.value(1).tap { _ in runs += 1 }.orFail()
        Promise<Int>(error: Flaw()).catch { _ in runs += 1 }
        Promise<Int>(error: Flaw()).ensure { runs += 1 }.ignoringErrors()
        while runs < 6 { try EventLoop.current.turn(.poll) }
    }
}
