@testable import PromisesTestSupport

struct WhenTests {
    @Test(.inLoop) func voidList() throws {
        let pairs = (0..<3).map { _ in Promise<Void>.pending() }
        let all: Promise<Void> = when(fulfilled: pairs.map(\.promise))
        for pair in pairs {
            expect(all.isPending)
            pair.resolver.fulfill()
        }
        expect(all.isFulfilled)
    }

    @Test(.inLoop) func oneRejectionRejectsAtOnce() {
        let tally = Tally()
        let pairs = (0..<3).map { _ in Promise<Tally.Token>.pending() }
        let all = when(fulfilled: [.value(tally.token())] + pairs.map(\.promise))
        pairs[1].resolver.reject(Flaw(1))
        expect(all.flaw == Flaw(1) && tally.alive == 0, "the value that there was is released")
        pairs[0].resolver.reject(Flaw(0))
        pairs[2].resolver.fulfill(tally.token())
        expectEqual(all.flaw, Flaw(1))
    }

    @Test(.inLoop) func theOthersRunOnAndAreNotReported() throws {
        let lines = try loggedInLoop { loop throws in
            var ran = false
            let slow = after(.seconds(1)).map { () throws -> Int in
                ran = true
                throw Flaw(2)
            }
            expect(when(fulfilled: [slow, Promise(error: Flaw(1))]), failsWith: Flaw(1))
            try loop.run()
            expect(ran)
        }
        expectEqual(lines, [])
    }

    /// malloc returns the block that this thread has freed last.
    @Test(.inLoop, .enabled(if: !isSanitized)) func theTableOfItsPromisesIsFreed() {
        let promises = (0..<41).map { Promise.value($0) }
        func nextBlock() -> UnsafeMutableRawPointer {
            let block = UnsafeMutableRawPointer.allocate(
                byteCount: promises.count * MemoryLayout<UInt>.size, alignment: 16)
            block.deallocate()
            return block
        }
        let block = nextBlock()
        for _ in 0..<3 { _ = when(resolved: promises) }
        expectEqual(nextBlock(), block)
    }

    @Test(.inLoop) func aBigList() {
        let count = scaled(100_000)
        let pairs = (0..<count).map { _ in Promise<Int>.pending() }
        let all = when(fulfilled: pairs.map(\.promise))
        for index in (0..<count).reversed() { pairs[index].resolver.fulfill(index) }
        expectEqual(all.settledValue?.elementsEqual(0..<count), true)
    }
}
