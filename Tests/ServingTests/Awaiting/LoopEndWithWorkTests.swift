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
