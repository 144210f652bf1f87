@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// Lookups of one name at a time share a thread.
struct SharedLookupTests {
    /// A lookup that finds 192.0.2.7 for every name. One that begins with "dead" waits at the gate.
    private final class SlowLookup: Sendable {
        let gate = Gate()
        let begun = Gate()
        let asked = Shared<[String]>([])
        let lookup: SystemNameLookup

        init(threads: Int, queueLimit: Int = 100, failure: CInt? = nil) throws {
            lookup = try SystemNameLookup(threads: threads, queueLimit: queueLimit) {
                [gate, begun, asked] name throws(NameLookupError) in
                asked.change { $0.append(name) }
                if name.hasPrefix("dead") {
                    begun.open()
                    gate.wait()
                }
                if let failure { throw NameLookupError(host: name, code: failure) }
                return [SocketAddress(host: "192.0.2.7", port: 0)!]
            }
        }

        func find(_ name: String, _ port: UInt16 = 1) -> Promise<[SocketAddress]> {
            lookup.addresses(of: name, port: port)
        }
    }

    private func found(_ port: UInt16) -> [SocketAddress] { [SocketAddress(host: "192.0.2.7", port: port)!] }

    @Test(.network) func oneNameTakesOneThread() throws {
        let slow = try SlowLookup(threads: 2)
        let dead = (1...12).map { slow.find("dead.example", $0) }
        expectEqual(try hang(slow.find("alive.example", 80), timeout: patience), found(80))
        expect(dead.allSatisfy(\.isPending))
        slow.gate.open(12)
        for (index, each) in dead.enumerated() {
            expectEqual(try hang(each, timeout: patience), found(UInt16(index + 1)))
        }
        expectEqual(slow.asked.value.filter { $0 == "dead.example" }.count, 1)
    }

    @Test(.network) func theCaseOfANameDoesNotMatterAndATryAfterAFailureIsAnotherLookup() throws {
        let slow = try SlowLookup(threads: 1, failure: EAI_AGAIN)
        let spelled = ["dead.example", "DEAD.example", "Dead.Example"].map { ($0, slow.find($0)) }
        let again = spelled[0].1.recover { _ in slow.find("dead.example") }
        slow.gate.open(4)
        for (name, promise) in spelled {
            // Each gets the error of the name that it asked for.
            #expect(throws: NameLookupError(host: name, code: EAI_AGAIN)) { try hang(promise, timeout: patience) }
        }
        #expect(throws: NameLookupError.self) { try hang(again, timeout: patience) }
        expectEqual(slow.asked.value, ["dead.example", "dead.example"])
    }

    /// Names that a crawler has given up leave room for others.
    @Test(.network) func onlyNamesThatSomebodyWaitsForFillTheQueue() throws {
        let slow = try SlowLookup(threads: 1, queueLimit: 2)
        let dead = slow.find("dead.example")
        slow.begun.wait()
        for number in 0..<10 { slow.find("gone\(number).example").cancel() }
        let (first, gone, second) = (slow.find("b.example"), slow.find("gone.example"), slow.find("B.example"))
        gone.cancel()
        let third = slow.find("a.example")
        expect(first.isPending && second.isPending && third.isPending)
        let tooMany = slow.find("c.example")
        expectEqual(tooMany.error as? DispatchError, .queueIsFull(name: "lookup", limit: 2))
        slow.gate.open()
        for each in [dead, first, second, third] { expectEqual(try hang(each, timeout: patience), found(1)) }
        expectEqual(slow.asked.value, ["dead.example", "b.example", "a.example"])
        try net.loop.run()
    }

    @Test(.network) func whoComesLaterJoinsALookupThatEverybodyElseHasLeft() throws {
        let slow = try SlowLookup(threads: 2)
        let first = slow.find("dead.example")
        slow.begun.wait()
        first.cancel()
        let later = (1...3).map { slow.find("dead.example", $0) }
        slow.gate.open(4)
        for (index, each) in later.enumerated() {
            expectEqual(try hang(each, timeout: patience), found(UInt16(index + 1)))
        }
        expectEqual(slow.asked.value, ["dead.example"])
    }

    @Test(.network) func loopsOfSeveralThreadsShareOne() throws {
        let slow = try SlowLookup(threads: 1)
        let here = slow.find("dead.example", 1)
        slow.begun.wait()
        let begun = Gate()
        let thread = TestThread { [self] in
            EventLoop.withLoop { _ in
                let there = slow.find("dead.example", 2)
                begun.open()
                expectEqual(try? hang(there, timeout: patience), found(2))
            }
        }
        begun.wait()
        slow.gate.open()
        expectEqual(try hang(here, timeout: patience), found(1))
        thread.join()
        expectEqual(slow.asked.value.count, 1)
    }

    @Test(.network) func aLoopRunsUntilItsLookupsHaveEnded() throws {
        let slow = try SlowLookup(threads: 1)
        var ports: [UInt16] = []
        for port in [UInt16(1), 2] {
            slow.find("dead.example", port).done { ports.append($0[0].port) }.cauterize()
        }
        slow.gate.open()
        try net.loop.run()
        expectEqual(ports, [1, 2])
    }

    @Test func aLoopMayEndBeforeItsLookup() throws {
        let slow = try SlowLookup(threads: 1)
        _ = try logged {
            try withNetwork { _ in
                slow.find("dead.example").ignoringErrors()
                slow.begun.wait()
            }
        }
        try withNetwork { _ in
            let next = slow.find("dead.example")
            slow.gate.open()
            expectEqual(try hang(next, timeout: patience), found(1))
        }
    }
}
