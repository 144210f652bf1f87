import Promises
import Reactor
import Testing

@Suite struct EnsureTests {
    @Test func runsOnEveryOutcomeAndChangesNone() throws {
        try inLoop { _ throws in
            var runs = 0
            #expect(try hang(Promise.value(1).ensure { runs += 1 }) == 1)
            #expect(throws: Flaw(2)) { try hang(Promise<Int>(error: Flaw(2)).ensure { runs += 1 }) }
            let cancelled = Promise<Int>(error: PromiseError.cancelled)
            #expect(throws: PromiseError.cancelled) { try hang(cancelled.ensure { runs += 1 }) }
            #expect(runs == 3)
        }
    }

    @Test func severalAroundACatch() throws {
        try inLoop { loop throws in
            var order: [String] = []
            Promise<Int>(error: Flaw())
                .ensure { order.append("inner") }
                .ensure { order.append("outer") }
                .catch { _ in order.append("catch") }
            try loop.run()
            #expect(order == ["inner", "outer", "catch"])
        }
    }
}

@Suite struct EnsureThenTests {
    @Test func theOutcomeWaitsForTheCleanup() throws {
        try inLoop { loop throws in
            for source in [Promise.value(1), Promise<Int>(error: Flaw(2))] {
                let (cleanup, finish) = Guarantee<Void>.pending()
                let promise = source.ensureThen { cleanup }
                var seen: Result<Int, any Error>?
                promise.tap { seen = $0 }.ignoringErrors()
                try loop.run()
                #expect(seen == nil)
                finish(())
                try loop.run()
                switch seen {
                case .success(let value): #expect(value == 1)
                case .failure(let error): #expect(error as? Flaw == Flaw(2))
                case nil: Issue.record("the cleanup has ended")
                }
            }
        }
    }

    @Test func aSettledCleanup() throws {
        try inLoop { _ throws in
            #expect(try hang(Promise.value(1).ensureThen { .value }) == 1)
            #expect(throws: Flaw(2)) { try hang(Promise<Int>(error: Flaw(2)).ensureThen { Guarantee() }) }
        }
    }

    @Test func aTimedCleanup() throws {
        try inLoop { loop throws in
            #expect(try hang(Promise.value(1).ensureThen { after(.seconds(5)) }) == 1)
            #expect(loop.now.nanoseconds == 5_000_000_000)
        }
    }

    @Test func onCancellation() {
        inLoop { _ in
            var ran = false
            let promise = Promise<Int>(error: PromiseError.cancelled).ensureThen {
                ran = true
                return .value
            }
            #expect(throws: PromiseError.cancelled) { try hang(promise) }
            #expect(ran)
        }
    }

    @Test func theHeldErrorKeepsItsOrigin() throws {
        let line: UInt = #line + 4
        let lines = try logged {
            try inLoop { loop throws in
                var promise: Promise<Int>? =
                    Promise<Int>(error: Flaw(1)).ensureThen { after(.seconds(1)) }
                try loop.run()
                #expect(promise != nil)
                promise = nil
            }
        }
        #expect(lines == ["unhandled rejection: Flaw(number: 1) (promise made at \(#fileID):\(line))"])
    }
}
