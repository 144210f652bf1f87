extension ProcessWide {
    /// Why a loop does not end.
    struct KeepAliveReasonsTests {
        private let loop = EventLoop.current

        @Test(.inRealTime) func aLoopThatWouldEndHasNoReason() {
            expect(loop.keepAliveReport.isEmpty)
            expectEqual(loop.keepAliveReport.description, "nothing")
        }

        @Test(.inLoop) func eachReasonHasItsLine() throws {
            try EventLoop.withLoop(clock: VirtualClock()) { loop in
                let pipe = Ends.pipe()
                let sockets = Ends.sockets()
                var line = UInt32(#line) + 1
                let watch = try loop.watch(pipe.near, for: .reading) { _ in }
                let both = [
                    try loop.watch(sockets.near, for: .reading) { _ in },
                    try loop.watch(sockets.near, for: .writing) { _ in },
                ]
                both[0].unref()
                loop.schedule(after: .seconds(30)) {}
                loop.schedule(after: .milliseconds(1500)) {}
                loop.schedule(after: .seconds(1)) {}.unref()
                let signal = try loop.onSignal(SIGUSR2) {}
                let hold = loop.hold()
                loop.enqueue {}
                loop.remote.beginExternalWork()

                let reasons = loop.keepAliveReport
                expect(!reasons.isEmpty)
                let file = "ReactorTests/KeepAliveReasonsTests.swift"
                // Other tests of the process leave holes in the numbers.
                let watched = [
                    (pipe.near, "for reading: watch at \(file):\(line)"),
                    (
                        sockets.near,
                        "for reading and writing: watch at \(file):\(line + 2) and at \(file):\(line + 3) (unreferenced)"
                    ),
                ].sorted { $0.0 < $1.0 }.map { "descriptor \($0.0) \($0.1)" }
                #expect(
                    reasons.description == """
                        1 ready job
                        2 timers, the nearest due in 1.5 seconds
                        1 timer (unreferenced)
                        \(watched.joined(separator: "\n"))
                        signal \(SIGUSR2): watch at \(file):\(line + 9)
                        hold at \(file):\(line + 10)
                        1 piece of work on other threads
                        """)
                line += 1
                loop.remote.endExternalWork()
                hold.cancel()
                signal.cancel()
                for watch in [watch] + both { watch.cancel() }
            }
        }

        @Test(.inLoop) func whatIsUnreferencedIsShownAndIsNoReason() throws {
            loop.schedule(after: .seconds(2)) {}.unref()
            let signal = try loop.onSignal(SIGUSR2) {}
            signal.unref()
            let reasons = loop.keepAliveReport
            expect(reasons.isEmpty)
            expect(!loop.isAlive)
            let lines = reasons.description.split(separator: "\n")
            expectEqual(lines.first, "1 timer, the nearest due in 2.0 seconds (unreferenced)")
            expectEqual(lines.last?.hasSuffix("(unreferenced)"), true)
            signal.cancel()
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
