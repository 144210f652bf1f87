import Synchronization

@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// `for await` over sequences of a loop.
@Suite(.serialized, .ownThread) struct StreamSequenceTests {
    @Test(.network) func chunksAreReadWhenTheyAreAskedFor() throws {
        let (a, b) = try Connection.pair()
        try net.loop.run {
            try await b.write("0123456789").value
            var chunks = a.chunks.makeAsyncIterator()
            await Task.yield()
            expectEqual(net.calls(.receive), 0, "nothing is read ahead")
            expectEqual(try await chunks.next(isolation: nil), Array("0123456789".utf8))
            b.close()
            let end = try await chunks.next(isolation: nil)
            let after = try await chunks.next(isolation: nil)
            expect(end == nil && after == nil)
        }
    }

    @Test(.network) func failuresAreThrownOnceAndEndIt() throws {
        let (a, b) = try Connection.pair()
        try net.loop.run {
            var lines = a.frames(LineDecoder(limit: 3)).makeAsyncIterator()
            try await b.write("abcdef\n").value
            await #expect(throws: StreamError.limitExceeded(limit: 3)) { try await lines.next(isolation: nil) }
            let after = try await lines.next(isolation: nil)
            expectEqual(after, nil)
        }
    }

    @Test(.network) func aDecoderKeepsItsStateFromFrameToFrame() throws {
        struct Counting: FrameDecoder {
            var count = 0
            mutating func decode(_ bytes: RawSpan) -> DecodedFrame<Int> {
                if bytes.byteCount == 0 { return .incomplete(missing: 1) }
                count += 1
                return .frame(count, consumed: 1)
            }
        }
        let (a, b) = try Connection.pair()
        try hang(b.write("abc").then { b.shutdownWrite() }, timeout: patience)
        let numbers = try net.loop.run {
            var numbers: [Int] = []
            for try await number in a.frames(Counting()) { numbers.append(number) }
            return numbers
        }
        expectEqual(numbers, [1, 2, 3])
    }

    @Test(.listener) func connectionsAreAcceptedWhenTheyAreAskedForUntilTheListenerIsClosed() throws {
        _ = [try Peer(to: listener.localAddress), try Peer(to: listener.localAddress)]
        try net.loop.run {
            for try await connection in listener.connections {
                connection.close()
                break
            }
        }
        net.settle()
        expectEqual(net.calls(.accept), 1)
        let rest = try net.loop.run {
            var count = 0
            for try await connection in listener.connections {
                connection.close()
                count += 1
                net.loop.enqueue { listener.close() }
            }
            return count
        }
        expectEqual(rest, 1)
    }

    @Test(.inRealTime) func signalsAreKeptUntilTheyAreAskedFor() throws {
        let loop = EventLoop.current
        do {
            // Sent by no other test: signals are process-wide.
            let (one, other): (CInt, CInt) = (59, 60)
            let both = try signals(one, other)
            expect(!loop.isAlive)
            kill(getpid(), one)
            kill(getpid(), one)
            try loop.run {
                var arrived = both.makeAsyncIterator()
                let first = try await arrived.next(isolation: nil)
                kill(getpid(), other)
                var second = try await arrived.next(isolation: nil)
                // The second one may have reached the process after the first was taken.
                if second == one { second = try await arrived.next(isolation: nil) }
                expect(first == one && second == other)
            }
        }
        expect(!loop.isAlive && loop.keepAliveReport.isEmpty)
    }

    /// The second caller asks when the signal has arrived, and the first one has not resumed yet.
    @Test(.inRealTime) func oneCallerAtATimeWaitsForASignal() throws {
        let loop = EventLoop.current
        let (isDelivered, resolver) = Promise<Void>.pending()
        let watch = try loop.onSignal(60) { resolver.fulfill(()) }
        nonisolated(unsafe) let sequence = try signals(60)
        func next(after promise: Promise<Void>) -> Promise<String> {
            Promise(on: loop) {
                try await promise.value
                var arrived = sequence.makeAsyncIterator()
                do { return "\(try await arrived.next(isolation: nil) ?? 0)" } catch { return "\(error)" }
            }
        }
        let first = next(after: .value)
        let second = next(after: isDelivered)
        let third = next(after: isDelivered)
        try loop.turn(.poll)
        // qemu-user keeps the last four signals to itself: it refuses to send them.
        expectEqual(kill(getpid(), 60), 0)
        expect(first, gives: "60")
        let refused = "\(PromiseError.badInput("signals: two callers wait for the next one"))"
        expect(second, gives: refused)
        expect(third, gives: refused)
        watch.cancel()
    }

    private static let hitsOfOldAction = Atomic<Int>(0)

    /// A sequence that is released has two signals, of which the program has taken one.
    @Test(.inRealTime) func signalsThatNobodyTookGoToTheRestoredAction() throws {
        let loop = EventLoop.current
        let (taken, left): (CInt, CInt) = (56, 57)
        var (action, found) = (sigaction(), sigaction())
        action.__sigaction_handler.sa_handler = { _ in StreamSequenceTests.hitsOfOldAction.add(1, ordering: .relaxed) }
        for signal in [taken, left] { sigaction(signal, &action, &found) }
        defer { for signal in [taken, left] { sigaction(signal, &found, nil) } }
        do {
            let both = try signals(taken, left)
            // The kernel reports the lower number first, if it reports both at once.
            for signal in [taken, left] { kill(getpid(), signal) }
            var first: CInt?
            try loop.run {
                var arrived = both.makeAsyncIterator()
                first = try await arrived.next(isolation: nil)
            }
            expect(first == taken || first == left)
        }
        // On another thread.
        spin { Self.hitsOfOldAction.load(ordering: .relaxed) == 1 }
    }

    @Test func signalsEndWithTheLoop() throws {
        let task = try EventLoop.withLoop { loop in
            let stops = try signals(58)
            nonisolated(unsafe) let sequence = stops
            let task = Task.immediate(executorPreference: loop.remote) {
                var arrived = sequence.makeAsyncIterator()
                do {
                    _ = try await arrived.next(isolation: nil)
                    return "it came"
                } catch { return "\(error)" }
            }
            return task
        }
        EventLoop.withLoop { _ in expect(Promise { await task.value }, gives: "\(PromiseError.loopEnded)") }
    }

    @Test(.network) func onAnotherThreadItRefuses() throws {
        let (a, _) = try Connection.pair()
        nonisolated(unsafe) let lines = a.lines
        let text = try hang(
            Promise { () -> String in
                do {
                    for try await _ in lines {}
                    return "it ended"
                } catch { return "\(error)" }
            })
        expect(text.contains("connection.lines"))
        expect(text.contains("not its loop's"))
    }
}
