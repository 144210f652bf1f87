@testable import PromisesTestSupport

struct WhenTests {
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
}

/// `when(resolved:)` and `when(guarantees:)`.
struct WhenResolvedTests {
    private let loop = EventLoop.current

    @Test(.inLoop) func inTheOrderOfTheList() throws {
        let pairs = (0..<4).map { _ in Promise<Int>.pending() }
        let all = when(resolved: pairs.map(\.promise))
        for index in [3, 1, 0] {
            if index % 2 == 0 {
                pairs[index].resolver.fulfill(index)
            } else {
                pairs[index].resolver.reject(Flaw(index))
            }
        }
        expect(all.isPending)
        pairs[2].resolver.fulfill(2)
        let outcomes = try #require(all.settledValue)
        expectEqual(outcomes.map(\.number), [0, nil, 2, nil])
        expectEqual(outcomes.map(\.flaw), [nil, Flaw(1), nil, Flaw(3)])
    }

    @Test(.inLoop) func ofTwoTypes() throws {
        let (text, resolver) = Promise<String>.pending()
        let both = when(resolved: Guarantee.value(1), text)
        expect(both.isPending)
        resolver.reject(Flaw(2))
        let (number, word) = try #require(both.settledValue)
        expect(try number.get() == 1 && word.flaw == Flaw(2))
    }

    @Test(.inLoop) func errorsCountAsHandled() throws {
        let lines = try loggedInLoop { loop throws in
            let late = after(.seconds(1)).map { () throws -> Int in throw Flaw(2) }
            hang(when(resolved: [Promise(error: Flaw(1)), late]))
            hang(when(resolved: Promise<Int>(error: Flaw(3)), Promise<String>(error: Flaw(4))).asVoid())
            try loop.run()
        }
        expectEqual(lines, [])
    }

    @Test(.inLoop) func guarantees() throws {
        let list = when(guarantees: (1...3).map { number in after(.seconds(4 - number)).map { number } })
        expect(list, gives: [1, 2, 3])
        let (number, text) = hang(when(guarantees: after(.seconds(1)).map { 1 }, .value("a")))
        expect(number == 1 && text == "a")
        expectEqual(loop.now.nanoseconds, 4_000_000_000)
    }

    @Test(.inLoop) func aGuaranteeThatNeverComes() throws {
        let lines = loggedInLoop { _ in
            let all = when(guarantees: [Guarantee<Int> { _ in }, .value(1)])
            expect(all.isPending)
            expect(all.asPromise().error as? PromiseError == .abandoned)
            let slow = after(.seconds(1))
            let both = when(guarantees: slow, .value(1))
            slow.cancel()
            expect(both.asPromise().error as? PromiseError == .cancelled)
        }
        expectEqual(lines.count, 1)
    }
}

extension Result where Failure == any Error {
    fileprivate var number: Success? { try? get() }
}
