extension ProcessWide {
    /// Why a loop does not end.
    struct KeepAliveReasonsTests {
        private let loop = EventLoop.current

        @Test(.inLoop) func eachReasonHasItsLineAndItsFigureAndWhatIsUnreferencedIsNone() throws {
            expectEqual(loop.keepAliveReport.description, "nothing")
            let (pipe, sockets) = (Ends.pipe(), Ends.sockets())
            let line = UInt32(#line)
            let watches = [
                try loop.watch(pipe.near, for: .reading) { _ in },
                try loop.watch(sockets.near, for: .reading) { _ in },
                try loop.watch(sockets.near, for: .writing) { _ in },
            ]
            watches[1].unref()
            let signal = try loop.onSignal(SIGUSR2) {}
            let hold = loop.hold()
            let timers = [Duration.seconds(30), .milliseconds(1500), .seconds(1)].map { loop.schedule(after: $0) {} }
            timers[2].unref()
            let remote = loop.remote
            loop.enqueue {}
            TestThread.run { _ = remote.submit {} }
            remote.beginExternalWork()

            let reasons = loop.keepAliveReport
            expect(!reasons.isEmpty)
            let file = "ReactorTests/KeepAliveReasonsTests.swift"
            let both = "watch at \(file):\(line + 3) and at \(file):\(line + 4) (unreferenced)"
            // Other tests of the process leave holes in the numbers.
            let watched = [
                (pipe.near, "for reading: watch at \(file):\(line + 2)"),
                (sockets.near, "for reading and writing: \(both)"),
            ].sorted { $0.0 < $1.0 }.map { "descriptor \($0.0) \($0.1)" }
            #expect(
                reasons.description == """
                    2 ready jobs
                    2 timers, the nearest due in 1.5 seconds
                    1 timer (unreferenced)
                    \(watched.joined(separator: "\n"))
                    signal \(SIGUSR2): watch at \(file):\(line + 7)
                    hold at \(file):\(line + 8)
                    1 piece of work on other threads
                    """)
            let before = loop.metrics
            expectEqual([before.readyJobs, before.timers, before.descriptors, before.signalWatches], [2, 3, 2, 1])
            expectEqual([before.holds, before.externalWork, before.waitingHandlers], [1, 1, 0])

            remote.endExternalWork()
            hold.cancel()
            for watch in watches { watch.cancel() }
            for timer in timers { timer.unref() }
            signal.unref()
            try loop.turn(.poll)
            let rest = loop.keepAliveReport
            expect(rest.isEmpty && !loop.isAlive)
            #expect(
                rest.description == """
                    3 timers, the nearest due in 1.0 seconds (unreferenced)
                    signal \(SIGUSR2): watch at \(file):\(line + 7) (unreferenced)
                    """)
            signal.cancel()
            let after = loop.metrics
            expectEqual([after.jobs, after.readyJobs, after.timers, after.descriptors], [2, 0, 3, 0])
            expectEqual([after.signalWatches, after.holds, after.externalWork], [0, 0, 0])
        }

        @Test(.inLoop) func itAgreesWithTheLoopInWhateverState() throws {
            let pipe = Ends.pipe()
            var dice = SplitMix64(11)
            var ends: [() -> Void] = []
            for _ in 0..<300 {
                switch Int.random(in: 0..<7, using: &dice) {
                case 0:
                    let timer = loop.schedule(after: .seconds(1)) {}
                    ends.append { timer.cancel() }
                case 1:
                    let timer = loop.schedule(after: .seconds(1)) {}
                    timer.unref()
                    ends.append { timer.cancel() }
                case 2:
                    if let watch = try? loop.watch(pipe.near, for: .reading, { _ in }) {
                        if Bool.random(using: &dice) { watch.unref() }
                        ends.append { watch.cancel() }
                    }
                case 3:
                    let hold = loop.hold()
                    ends.append { hold.cancel() }
                case 4: loop.enqueue {}
                case 5: try loop.turn(.poll)
                default:
                    for end in ends.shuffled(using: &dice) { end() }
                    ends = []
                }
                expectEqual(loop.keepAliveReport.isEmpty, !loop.isAlive)
            }
            for end in ends { end() }
        }
    }
}
