/// The current loop of each thread.
struct CurrentLoopTests {
    @Test(.inRealTime) func aThreadHasOneLoopAndAnotherThreadHasAnother() {
        let loop = EventLoop.current
        expect(EventLoop.current === loop)
        expect(EventLoop.current === loop)
        let mine = ObjectIdentifier(loop)
        let (isOwn, isSame) = TestThread.run {
            (ObjectIdentifier(EventLoop.current) != mine, EventLoop.current === EventLoop.current)
        }
        expect(isOwn && isSame)
    }

    @Test func loopsNestAndTheOuterOneComesBack() throws {
        struct Refusal: Error {}
        EventLoop.withLoop { outer in
            EventLoop.withLoop { inner in
                expect(outer !== inner)
                expect(EventLoop.current === inner)
            }
            expect(EventLoop.current === outer)
            #expect(throws: Refusal.self) { try EventLoop.withLoop { _ in throw Refusal() } }
            expect(EventLoop.current === outer)
        }
    }

    @Test func theLoopOfAThreadEndsWithIt() {
        let tally = Tally()
        let remote = TestThread.run {
            let loop = EventLoop.current
            loop.schedule(after: .seconds(3600), tally.bound())
            return loop.remote
        }
        expectEqual(tally.alive, 0)
        expect(!remote.submit {})
    }

    @Test func whatIsReleasedAtTheEndOfAThreadMayAskForTheCurrentLoop() {
        let isSame = Counter()
        TestThread {
            let loop = EventLoop.current
            let address = ObjectIdentifier(loop)
            let words = LastWords { if ObjectIdentifier(EventLoop.current) == address { isSame.add() } }
            loop.schedule(after: .seconds(3600)) { withExtendedLifetime(words) {} }
        }.join()
        expectEqual(isSame.value, 1)
    }

    @Test func manyThreadsThatMakeALoopAndEndLeakNoDescriptors() {
        // Only read when the loop's thread has ended.
        struct Ended: @unchecked Sendable {
            let loop: EventLoop
        }
        for _ in 0..<50 {
            let loops = SharedList<Ended>()
            let helpers = (0..<4).map { _ in
                TestThread {
                    let loop = EventLoop.current
                    _ = try! loop.fileDescriptor
                    loop.schedule(after: .seconds(3600)) {}
                    try! loop.turn(.upTo(.microseconds(10)))
                    loops.append(Ended(loop: loop))
                }
            }
            helpers.forEach { $0.join() }
            expectEqual(loops.value.count, helpers.count)
            for ended in loops.value {
                let calls = ended.loop.metrics.systemCalls
                expect(calls[.epollCreate] == 1 && calls[.eventCreate] == 1 && calls[.timerCreate] == 1)
                expectEqual(calls[.close], 3)
            }
        }
    }
}
