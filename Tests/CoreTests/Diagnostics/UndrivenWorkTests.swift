@testable import PromisesTestSupport

/// Handlers on threads whose loop is not driven are reported with their line.
@Suite(.serialized) struct UndrivenWorkTests {
    /// The reports of a handler that `run` attaches by its last argument.
    private func reports(
        line: UInt = #line, _ run: (LogRecorder, _ attach: @escaping @Sendable () -> Void) throws -> Void
    ) rethrows -> [String] {
        let recorder = LogRecorder(where: { event in
            guard case .loopNotRunning(let callSite) = event else { return false }
            return callSite == CallSite(#fileID, line)
        })
        defer { recorder.stop() }
        let (promise, resolver) = Promise<Int>.pending()
        try run(recorder) {
            promise.done({ _ in Issue.record("this thread's loop is not driven") }, line: line).ignoringErrors()
        }
        withExtendedLifetime(resolver) {}
        return recorder.lines
    }

    @Test func onAThreadThatEndsOnceAPlace() {
        let line: UInt = #line + 1
        let lines = reports { _, attach in TestThread.run { for _ in 0..<3 { attach() } } }
        expectEqual(lines.count, 1)
        expectEqual(lines.first?.contains("UndrivenWorkTests.swift:\(line) waits on a thread whose"), true)
    }

    @Test(.ownThread) func aThreadOfSwiftsPoolGoesOnNoting() {
        let seen = Shared<[Bool]>([])
        let lines = reports { recorder, attach in
            // A handler is forgotten without a report if another test drives the loop of that thread first.
            while recorder.count == 0 {
                let hasAttached = Gate()
                Task.detached {
                    UndrivenWork.gracePeriod.store(0, ordering: .relaxed)
                    hangForATurn()
                    attach()
                    seen.change { $0.append(EventLoop.isNotingHandlers) }
                    hasAttached.open()
                }
                hasAttached.wait()
                for _ in 0..<1000 where recorder.count == 0 { sched_yield() }
            }
        }
        UndrivenWork.gracePeriod.store(1_000_000_000, ordering: .relaxed)
        expect(seen.value.allSatisfy { $0 })
        expectEqual(lines.count, 1)
    }

    @Test func aJobOfAPoolGoesOnNoting() throws {
        let pool = try ThreadPool(threads: 1)
        let lines = try reports { _, attach in
            try EventLoop.withLoop { _ in
                try hang(Promise(on: pool) { hang(after(.zero)) })
                try hang(Promise(on: pool) { attach() })
            }
            pool.shutDown()
        }
        expectEqual(lines.count, 1)
    }

    @Test func afterThatAThreadOfTheProgramNotesNothing() throws {
        let seen = Shared<[Bool]>([])
        TestThread.run {
            func look() { seen.change { $0.append(EventLoop.isNotingHandlers) } }
            look()
            let first = Promise.value(1).map { $0 + 1 }
            look()
            _ = try? hang(first)
            look()
            EventLoop.current.enqueue(look)
            hang(after(.zero))
            look()
        }
        // Nothing before it has a loop, or has driven it.
        expectEqual(seen.value, [false, true, false, false, false])
    }

    @Test func aLoopOfItsOwnInsideNotesNothing() {
        let seen = Shared<[Bool]>([])
        TestThread.run {
            func look() { seen.change { $0.append(EventLoop.isNotingHandlers) } }
            let outer = EventLoop.current
            look()
            EventLoop.withLoop { _ in
                look()
                // Turned inside the other one.
                try? outer.turn(.poll)
                look()
            }
            look()
        }
        expectEqual(seen.value, [true, false, false, false])
    }

    /// The lines after `line` noted for a thread that runs `body` and drives nothing.
    private func notedLines(below line: UInt, _ body: @escaping @Sendable () -> Void) -> [UInt] {
        let lines = Shared<[UInt]>([])
        TestThread.run {
            let loop = EventLoop.current
            body()
            let places = loop.unrunCallSites.filter { $0.file.hasSuffix("/UndrivenWorkTests.swift") }
            let noted = places.map { UInt($0.line) - line }
            lines.change { $0 = noted }
            while loop.isReady { try? loop.turn(.poll) }
        }
        return lines.value
    }

    @Test func whatIsOverIsForgotten() {
        let (promise, resolver) = Promise<Int>.pending()
        let held = Shared<[Promise<Int>]>([])
        let line: UInt = #line
        let noted = notedLines(below: line) {
            after(.seconds(3600)).cancel()
            let mapped = promise.map { $0 + 1 }
            mapped.cancel()
            let all = when(fulfilled: Promise.value(1), Promise.value(2))
            // Released when its promise ends.
            Promise<Int>.pending().promise.done { _ in }.ignoringErrors()
            let waits = promise.map { $0 + 2 }
            held.change { $0 = [mapped, waits] }
            withExtendedLifetime((all, mapped)) {}
        }
        // The third and the seventh line pass a rejection on by jobs, which are still queued.
        expectEqual(noted.filter { $0 != 3 && $0 != 7 }, [8])
        withExtendedLifetime(resolver) {}
    }

    @Test func whatRunsBeforeTheFirstTurnOfAHangIsForgotten() {
        let line: UInt = #line
        let noted = notedLines(below: line) {
            let (never, resolver) = Promise<Int>.pending()
            expect(
                Promise.value(1).then { value -> Promise<Int> in
                    never.map { $0 }.ignoringErrors()
                    return .value(value)
                }, gives: 1)
            withExtendedLifetime(resolver) {}
        }
        expectEqual(noted, [])
    }

    @Test func aCancellationThatALoopLeavesBehindIsNoHandler() {
        let lines = logged {
            EventLoop.withLoop { _ in
                let timer = after(.seconds(3600))
                TestThread.run { timer.cancel() }
            }
        }
        expectEqual(lines, [])
    }

    @Test(.inLoop) func aReadyHandlerIsCountedOnce() {
        let loop = EventLoop.current
        let mapped = Promise.value(1).map { $0 + 1 }
        expectEqual(loop.undeliveredCount, 1)
        let (promise, resolver) = Promise<Int>.pending()
        let waiting = promise.map { $0 }
        expectEqual(loop.undeliveredCount, 2)
        loop.enqueue {}
        expectEqual(loop.undeliveredCount, 3)
        _ = try? loop.turn(.poll)
        waiting.cancel()
        expectEqual(loop.undeliveredCount, 1)
        _ = try? loop.turn(.poll)
        expectEqual(loop.undeliveredCount, 0)
        withExtendedLifetime((mapped, resolver)) {}
    }

    @Test(.ownThread) func theEndOfTheProcessReportsLivingThreadsInTheWordsOfTheLog() async throws {
        let result = try await #require(
            processExitsWith: .success, observing: [\.standardErrorContent]
        ) {
            // `conf` is not touched.
            let attached = Gate()
            _ = TestThread {
                let (promise, resolver) = Promise<Int>.pending()
                let kept = promise.map { $0 + 1 }
                after(.seconds(3600)).cancel()
                attached.open()
                Gate().wait()
                withExtendedLifetime((kept, resolver)) {}
            }
            attached.wait()
            // Unlike the end of an exit test, this runs the functions registered with atexit(3).
            exit(0)
        }
        let lines = String(decoding: result.standardErrorContent, as: UTF8.self).split(separator: "\n")
            .filter { $0.hasPrefix("swift-reactor: ") }
        let line = UInt(#line) - 19
        let event = LogEvent.loopNotRunning(at: CallSite(#fileID, line))
        expectEqual(lines.map(String.init), ["swift-reactor: \(event)"])
    }
}

/// For asynchronous functions, which may not call it.
private func hangForATurn() { hang(after(.zero)) }
