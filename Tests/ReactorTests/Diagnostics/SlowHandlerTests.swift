extension ProcessWide {
    /// Handlers that block their loop for long.
    struct SlowHandlerTests {
        private let clock = VirtualClock()

        /// The reports while `body` has a loop with that threshold.
        private func reports(
            over threshold: Duration? = .milliseconds(10), taking milliseconds: Int = 0,
            _ body: (EventLoop) throws -> Void
        ) rethrows -> [SlowHandler] {
            let reports = SharedList<SlowHandler>()
            // The test has one thread.
            nonisolated(unsafe) let clock = clock
            let handler = ReportHandler<LoopEvent> {
                guard case .slowHandler(let slow, _) = $0 else { return }
                reports.append(slow)
                clock.advance(by: .milliseconds(milliseconds))
            }
            let before = LoopEvent.handler.withLock { current in
                defer { current = handler }
                return current
            }
            defer { LoopEvent.handler.withLock { $0 = before } }
            try EventLoop.withLoop(clock: clock) { loop in
                loop.slowHandlerThreshold = threshold
                try body(loop)
            }
            return reports.value
        }

        private func work(_ milliseconds: Int) { clock.advance(by: .milliseconds(milliseconds)) }

        @Test(.hearingSignals) func jobsTimersWatchesSignalsAndHooksAreReportedWithTheirLines() throws {
            let pipe = Ends.pipe()
            var line: UInt = 0
            nonisolated(unsafe) let clock = clock
            let reports = try reports { loop in
                line = #line
                loop.enqueue { work(11) }
                loop.remote.submit { clock.advance(by: .milliseconds(12)) }
                loop.schedule(after: .zero) { work(13) }
                let watch = try loop.watch(pipe.near, for: .reading) { _ in
                    take(from: pipe.near)
                    work(14)
                }
                put(into: pipe.far)
                for _ in 0..<3 { try loop.turn(.poll) }
                watch.cancel()
                let signal = try loop.onSignal(SIGUSR1) { work(15) }
                raise(SIGUSR1)
                try loop.turn(.poll)
                signal.cancel()
                loop.beforeWaiting { work(16) }
                loop.schedule(after: .seconds(1)) {}
                try loop.run()
            }
            expectEqual(reports.map(\.kind), [.job, .job, .watch, .timer, .signal, .hook])
            expectEqual(reports.map(\.duration), [11, 12, 14, 13, 15, 16].map { .milliseconds($0) })
            expectEqual(reports.map { $0.callSite?.line }, [1, 2, 4, 3, 11, 15].map { UInt32(line) + $0 })
            expect(reports[0].description.hasPrefix("a job at ReactorTests/SlowHandlerTests.swift:"))
            expect(reports[0].description.hasSuffix(" held the loop for 0.011 seconds"))
        }

        @Test func whatIsQuickerThanTheThresholdIsNotNorTheTimeOfAReport() throws {
            let reports = try reports(taking: 50) { loop in
                for milliseconds in [9, 9, 10, 1] { loop.enqueue { work(milliseconds) } }
                try loop.run()
                expectEqual(loop.metrics.slowHandlers, 1)
            }
            expectEqual(reports.map(\.duration), [.milliseconds(10)])
        }

        @Test func withoutAThresholdNothingIsMeasured() throws {
            let reports = try reports(over: nil) { loop in
                expectEqual(loop.slowHandlerThreshold, nil)
                loop.enqueue { work(1000) }
                loop.schedule(after: .zero) { work(1000) }
                try loop.run()
                expectEqual(loop.metrics.longestHandler, nil)
                loop.slowHandlerThreshold = .milliseconds(1)
                expectEqual(loop.slowHandlerThreshold, .milliseconds(1))
                loop.slowHandlerThreshold = nil
                loop.enqueue { work(1000) }
                try loop.run()
                expectEqual(loop.metrics.slowHandlers, nil)
            }
            expect(reports.isEmpty)
        }

        @Test func theMeasurementBeginsInTheHandlerThatSetsTheThreshold() throws {
            var line: UInt32 = 0
            let reports = try reports { loop in
                loop.enqueue {}
                try loop.run()
                loop.slowHandlerThreshold = nil
                loop.schedule(after: .seconds(1)) { work(12) }
                loop.enqueue {
                    work(500)
                    loop.slowHandlerThreshold = .milliseconds(10)
                    work(5)
                }
                line = #line + 1
                loop.enqueue { work(20) }
                try loop.run()
            }
            expectEqual(reports.map(\.kind), [.job, .timer])
            expectEqual(reports.map(\.duration), [.milliseconds(20), .milliseconds(12)])
            expectEqual(reports.map(\.callSite?.line), [line, nil], "a job's line is always known")
        }

        @Test func turnsThatAHandlerMakesAreNotItsTime() throws {
            let reports = try reports { loop in
                loop.enqueue {
                    work(6)
                    var fired = false
                    loop.schedule(after: .seconds(10)) {
                        work(15)
                        fired = true
                    }
                    _ = try! loop.run { fired }
                    work(7)
                }
                try loop.run()
            }
            expectEqual(reports.map(\.kind), [.timer, .job])
            expectEqual(reports.map(\.duration), [.milliseconds(15), .milliseconds(13)])
        }
    }
}
