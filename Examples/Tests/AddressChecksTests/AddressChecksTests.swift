import AddressChecks
import Glibc
import Promises
import Reactor
import ReactorIO
import Testing

@Suite struct AddressChecksTests {
    /// Peers that answer after a given time, or never, and record the attempts.
    final class Peers {
        enum Answer {
            case accepts(after: Duration)
            case refuses(after: Duration)
            case isSilent
        }

        /// The answers of an address, one per attempt; the last one repeats.
        var answers: [String: [Answer]] = [:]
        /// The start times of the attempts, in milliseconds.
        private(set) var began: [Int64] = []
        private(set) var pending = 0
        private(set) var mostPending = 0

        func connect(_ address: String) -> Promise<Void> {
            began.append(EventLoop.current.now.nanoseconds / 1_000_000)
            pending += 1
            mostPending = max(mostPending, pending)
            let list = answers[address] ?? [.accepts(after: .seconds(1))]
            if list.count > 1 { answers[address]?.removeFirst() }
            return settled(list[0]).ensure { self.pending -= 1 }
        }

        private func settled(_ answer: Answer) -> Promise<Void> {
            switch answer {
            case .accepts(let time): after(time).asPromise()
            case .refuses(let time): after(time).map { throw SystemError(.connect, ECONNREFUSED, detail: "somewhere") }
            case .isSilent: after(.seconds(1_000_000)).asPromise()
            }
        }
    }

    private func settings(concurrency: Int = 10, retries: Int = 0) -> AddressChecks.Settings {
        var settings = AddressChecks.Settings()
        settings.concurrency = concurrency
        settings.retries = retries
        settings.backOff = .exponential(from: .milliseconds(200), isJittered: false)
        return settings
    }

    @Test func linesHaveTheOrderOfTheAddresses() throws {
        try withVirtualTime {
            let peers = Peers()
            peers.answers = [
                "a:1": [.accepts(after: .milliseconds(30))], "b:1": [.refuses(after: .milliseconds(10))],
                "c:1": [.accepts(after: .milliseconds(20))], "d:1": [.accepts(after: .milliseconds(40))],
            ]
            let checks = AddressChecks(["a:1", "b:1", "c:1", "d:1"], settings(), connector: peers.connect)
            var printed: [[String]] = []
            try hang(checks.start { printed.append(checks.takeLines()) })
            let first = ["a:1: ok 30 ms", "b:1: Connection refused", "c:1: ok 20 ms"]
            #expect(printed == [[], [], first, ["d:1: ok 40 ms"]])
            #expect(checks.checkedCount == 4 && checks.failedCount == 1)
            #expect(checks.takeAllLines() == [])
        }
    }

    @Test func onlySoManyAreCheckedAtATime() throws {
        try withVirtualTime {
            let peers = Peers()
            let addresses = (1...7).map { "a:\($0)" }
            try hang(AddressChecks(addresses, settings(concurrency: 3), connector: peers.connect).start())
            #expect(peers.mostPending == 3)
            #expect(peers.began == [0, 0, 0, 1000, 1000, 1000, 2000])
        }
    }

    @Test func eachAttemptHasATimeLimitAndThePausesGrow() throws {
        try withVirtualTime {
            let peers = Peers()
            peers.answers = ["a:1": [.isSilent]]
            let checks = AddressChecks(["a:1"], settings(retries: 2), connector: peers.connect)
            try hang(checks.start())
            #expect(peers.began == [0, 5200, 10_600])
            #expect(EventLoop.current.now.nanoseconds == 15_600_000_000)
            #expect(peers.mostPending == 1 && peers.pending == 0)
            #expect(checks.takeLines() == ["a:1: timed out"])
        }
    }

    @Test func theTimeIsThatOfTheAttemptThatSucceeds() throws {
        try withVirtualTime {
            let peers = Peers()
            peers.answers = ["a:1": [.isSilent, .refuses(after: .zero), .accepts(after: .milliseconds(12))]]
            let checks = AddressChecks(["a:1"], settings(retries: 5), connector: peers.connect)
            try hang(checks.start())
            #expect(peers.began.count == 3)
            #expect(checks.takeLines() == ["a:1: ok 12 ms"])
            #expect(checks.failedCount == 0)
        }
    }

    @Test func aCancellationKeepsWhatIsKnown() {
        withVirtualTime {
            let peers = Peers()
            peers.answers = ["b:1": [.isSilent], "d:1": [.refuses(after: .seconds(1))], "e:1": [.isSilent]]
            let addresses = ["a:1", "b:1", "c:1", "d:1", "e:1", "f:1"]
            let checks = AddressChecks(addresses, settings(concurrency: 2), connector: peers.connect)
            let checked = checks.start()
            after(.milliseconds(3500)).done { checked.cancel() }
            #expect(throws: PromiseError.cancelled) { try hang(checked) }
            #expect(checks.takeLines() == ["a:1: ok 1000 ms"])
            #expect(checks.takeAllLines() == ["c:1: ok 1000 ms", "d:1: Connection refused"])
            #expect(checks.checkedCount == 3)
            // The attempt in progress has ended, and "f:1" was never tried.
            #expect(peers.pending == 0 && peers.began.count == 5)
        }
    }

    @Test func anErrorOfTheOutputEndsTheChecks() {
        withVirtualTime {
            let peers = Peers()
            let checks = AddressChecks(["a:1", "b:1"], settings(concurrency: 1), connector: peers.connect)
            let full = SystemError(.write, ENOSPC)
            #expect(throws: full) { try hang(checks.start { throw full }) }
            #expect(peers.began.count == 1)
        }
    }

    @Test func aTypingErrorIsNotTriedAgain() throws {
        try withVirtualTime {
            let checks = AddressChecks(["a b:80"], settings(retries: 5))
            try hang(checks.start())
            #expect(EventLoop.current.now.nanoseconds == 0)
            #expect(checks.failedCount == 1)
        }
    }

    @Test func aListenerAnswers() throws {
        try EventLoop.withLoop { _ in
            let listener = try Listener.bind("127.0.0.1:0")
            let checks = AddressChecks(["\(listener.localAddress)"])
            try hang(checks.start(), timeout: .seconds(30))
            listener.close()
            #expect(checks.takeLines().first?.hasPrefix("\(listener.localAddress): ok ") == true)
        }
    }
}
