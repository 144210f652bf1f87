@testable import PromisesTestSupport

/// Decisions by time on a late loop: it first handles what was due before that time, with its consequences.
struct LateLoopTests {
    /// The functions that decide between a promise and a time, both of which have passed.
    enum Decider: CaseIterable {
        case timeout, timeoutAtDeadline, race, raceOfChains, hang, cancel

        /// - Returns: true if `source` has won.
        func decide(_ source: Promise<Int>, _ limit: Duration) throws -> Bool {
            switch self {
            case .timeout: try wins { try Promises.hang(source.timeout(limit)) }
            case .timeoutAtDeadline:
                try wins { [deadline = EventLoop.current.now.advanced(by: limit)] in
                    try Promises.hang(source.timeout(deadline: deadline))
                }
            case .race: try Promises.hang(Promises.race(source, after(limit).map { 0 }.asPromise())) == 1
            case .raceOfChains:
                try Promises.hang(Promises.race(after(limit).map { 0 }.asPromise(), source.map { $0 }.map { $0 })) == 1
            case .hang: try wins { try Promises.hang(source, timeout: limit) }
            case .cancel:
                try wins {
                    after(limit).done { source.cancel() }
                    return try Promises.hang(source.map { $0 })
                }
            }
        }

        private func wins(_ body: () throws -> Int) throws -> Bool {
            do { return try body() == 1 } catch let error as PromiseError
                where error == .timedOut || error == .cancelled
            {
                return false
            }
        }
    }

    enum Lateness: CaseIterable { case virtual, real }

    @Test(arguments: Decider.allCases, Lateness.allCases)
    func theEarlierMomentDecides(_ decider: Decider, _ lateness: Lateness) throws {
        for isSourceFirst in [true, false] {
            let clock = VirtualClock()
            try EventLoop.withLoop(clock: lateness == .virtual ? clock : nil) { loop in
                let end = loop.now.advanced(by: .milliseconds(4))
                // Its handler blocks the loop until both moments have passed.
                after(.zero).done {
                    if lateness == .virtual { clock.advance(to: end) } else { spin { loop.now > end } }
                }
                let source = after(.milliseconds(isSourceFirst ? 1 : 3)).map { 1 }.map { $0 }.asPromise().then {
                    Promise.value($0)
                }
                // A `hang` returns to find both, and prefers the value.
                let hasWon = isSourceFirst || decider == .hang
                expectEqual(try decider.decide(source.map { $0 }, .milliseconds(2)), hasWon)
            }
        }
    }
}
