@testable import PromisesTestSupport

@Suite(.serialized) struct LoopEndWithWorkTests {
    @Test func whatOnlyItWouldHaveSettledIsRejected() throws {
        let lines = LogRecorder(where: { if case .undeliveredHandlers = $0 { true } else { false } })
        defer { lines.stop() }
        try EventLoop.withLoop { _ throws in
            let worker = try EventLoop.spawn()
            let (here, resolver) = Promise<Int>.pending()
            worker.submit {
                after(.seconds(3600)).map { 1 }.pipe { resolver.resolve($0) }
                worker.stop()
            }
            expect(here, failsWith: PromiseError.loopEnded)
            try hang(worker.ended, timeout: patience)
            // Loops of other tests may have ended like that meanwhile.
            expect(lines.lines.contains("an event loop ended with 1 undelivered handler"))
        }
    }

    @Test(.inRealTime) func aHangThereComesBack() throws {
        let worker = try EventLoop.spawn()
        let (fate, resolver) = Promise<String>.pending()
        let (hanging, begun) = Guarantee<Void>.pending()
        worker.submit {
            begun(())
            let never = Promise<Void>.pending()
            do {
                try hang(never.promise)
                resolver.fulfill("fulfilled")
            } catch { resolver.fulfill("\(error)") }
            withExtendedLifetime(never) {}
        }
        try hang(hanging, timeout: patience)
        worker.stop()
        expect(fate, gives: "\(PromiseError.loopEnded)")
        try hang(worker.ended, timeout: patience)
    }

    /// What learns of the end, or cleans up for another thread, may attach a handler to the loop that ends.
    @Test(arguments: ["whenEnded", "ended", "cleanup"]) func handlersThatTheEndMakesAreReleased(maker: String) throws {
        let tally = Tally()
        @Sendable func attach() {
            let mark = tally.boundForThreads()
            Promise.value(1).done { _ in mark() }.ignoringErrors()
        }
        if maker == "ended" {
            let worker = try EventLoop.spawn()
            let attached = worker.ended.map(on: nil) { attach() }
            worker.stop()
            worker.join()
            withExtendedLifetime(attached) {}
        } else {
            EventLoop.withLoop { loop in
                if maker == "whenEnded" { loop.remote.whenEnded { attach() } }
                // Sound, since the thread is joined.
                nonisolated(unsafe) let loop = loop
                let words = LastWords { TestThread { loop.performCleanup { attach() } }.join() }
                if maker == "cleanup" { loop.enqueue { words.use() } }
            }
        }
        expectEqual(tally.peak, 1)
        expectEqual(tally.alive, 0)
    }

    @Test(.inRealTime) func endedIsFulfilledForWhoeverAsksLateToo() throws {
        let loop = EventLoop.current
        let worker = try EventLoop.spawn()
        let ended = worker.ended
        expect(!loop.isAlive && loop.canWakeItself && ended.isPending)
        worker.stop()
        hang(ended)
        let late = worker.ended
        expect(late.isFulfilled)
        worker.join()
        // What woke the hang may still be in the mail.
        while loop.isReady { try loop.turn(.poll) }
        expect(!loop.canWakeItself)
    }
}
