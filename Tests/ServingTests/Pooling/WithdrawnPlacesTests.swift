@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// What has been withdrawn, by a cancellation or a time-out, counts in no limit of a queue any more. (A write through a
/// filter cannot be withdrawn.)
struct WithdrawnPlacesTests {
    enum Queue: CaseIterable { case jobs, files, lookups, leases, writes, datagrams }
    enum Order: CaseIterable { case newestFirst, oldestFirst, middle }

    /// A queue in which nothing advances until `release` is called.
    private struct Full {
        let add: () throws -> Promise<Void>
        var release: () throws -> Void = {}
    }

    private func occupy(_ queue: Queue) throws -> Full {
        let gate = Gate()
        switch queue {
        case .jobs, .files:
            let pool = try ThreadPool(threads: 1, queueLimit: 10)
            let hasBegun = Gate()
            try pool.dispatch {
                hasBegun.open()
                gate.wait()
            }
            hasBegun.wait()
            return Full(
                add: { queue == .jobs ? Promise(on: pool) {} : readFile("/dev/null", on: pool).asVoid() },
                release: {
                    gate.open()
                    pool.shutDown()
                })
        case .lookups:
            let lookup = try SystemNameLookup(threads: 1, queueLimit: 10) { _ in
                gate.wait()
                return []
            }
            var number = 0
            let add = {
                number += 1
                return lookup.addresses(of: "a\(number).invalid", port: 1).asVoid()
            }
            let first = add()
            return Full(
                add: add,
                release: {
                    gate.open(1000)
                    try hang(first, timeout: patience)
                })
        case .leases:
            let (lease, resolver) = Promise<Void>.pending()
            let pool = Workshop().pool(PoolLimits(perKey: 1, waiting: 10))
            let first = pool.with(.name("a")) { _ in lease }
            return Full(
                add: { pool.with(.name("a")) { _ in .value } },
                release: {
                    resolver.fulfill(())
                    try hang(first, timeout: patience)
                })
        case .writes:
            let (connection, peer) = try net.pair()
            net.kernel.send = { _, _, _ in -Int(EAGAIN) }
            net.kernel.sendVector = { _, _, _ in -Int(EAGAIN) }
            connection.writeQueueLimit = 10_000
            return Full(
                add: { connection.write(pattern(900)) },
                release: {
                    connection.abort(); peer.close()
                })
        case .datagrams:
            let socket = try DatagramSocket.bind("127.0.0.1:0")
            let address = socket.localAddress
            net.kernel.sendMessages = { _, _, _ in -Int(EAGAIN) }
            return Full(add: { socket.send("a".utf8, to: address) }, release: { socket.close() })
        }
    }

    /// Adds until one is refused, and returns the others.
    private func fill(_ queue: Full) throws -> [Promise<Void>] {
        var taken: [Promise<Void>] = []
        while taken.count < 5000 {
            let next = try queue.add()
            net.loop.runReadyJobs()
            if let error = next.error {
                if taken.isEmpty { Issue.record("\(error)") }
                next.ignoringErrors()
                return taken
            }
            taken.append(next)
        }
        return taken
    }

    @Test(.network(turns: 20_000), arguments: Queue.allCases, Order.allCases)
    func theNextOnesHaveTheirPlaces(queue: Queue, order: Order) throws {
        let full = try occupy(queue)
        let first = try fill(full)
        expect(first.count >= 5 && first.count < 5000, "\(first.count)")
        switch order {
        case .newestFirst: for promise in first.reversed() { promise.cancel() }
        case .oldestFirst: for promise in first { promise.cancel() }
        // The first and the last stay.
        case .middle: for promise in first.dropFirst().dropLast() { promise.cancel() }
        }
        for promise in first { promise.ignoringErrors() }
        let left = order == .middle ? 2 : 0
        let second = try fill(full)
        expectEqual(second.count, first.count - left)
        for promise in second { promise.ignoringErrors() }
        try full.release()
    }

    @Test(.inRealTime) func aSweepLosesNoJob() throws {
        let pool = try ThreadPool(threads: 1)
        let (gate, hasBegun) = (Gate(), Gate())
        try pool.dispatch {
            hasBegun.open()
            gate.wait()
        }
        hasBegun.wait()
        let ran = Shared<[Int]>([])
        let tally = Tally()
        let jobs = (0..<1000).map { number in
            Promise(on: pool, tally.boundForThreads { ran.change { $0.append(number) } })
        }
        for (number, job) in jobs.enumerated() where !number.isMultiple(of: 7) { job.cancel() }
        let expected = (0..<1000).filter { $0.isMultiple(of: 7) }
        expectEqual(pool.metrics.queued, expected.count)
        expectEqual(tally.alive, expected.count, "what is withdrawn is released")
        gate.open()
        try hang(when(resolved: jobs), timeout: patience)
        expectEqual(ran.value, expected)
        expectEqual(pool.metrics.completed, expected.count + 1)
        pool.shutDown()
    }

    /// Each in constant time, by its promise.
    @Test(.network(turns: 20_000)) func theOtherWaitsKeepTheirOrder() throws {
        let child = try ChildProcess.spawn("cat", standardInput: .pipe)
        let listener = try net.listen()
        var (exits, accepted) = ([Int](), [Int]())
        let waits = (0..<1000).map { number in child.exit.asPromise().done { _ in exits.append(number) } }
        let accepts = (0..<1000).map { number in
            listener.accept().done {
                accepted.append(number); $0.abort()
            }
        }
        for number in (0..<1000).shuffled() where !number.isMultiple(of: 300) {
            waits[number].cancel()
            accepts[number].cancel()
        }
        child.standardInput?.close()
        let clients = try (0..<2).map { _ in try Peer(to: listener.localAddress) }
        try hang(when(fulfilled: waits[0], waits[300], waits[600], waits[900], accepts[0], accepts[300]).asVoid())
        listener.close()
        for number in [600, 900] { expectEqual(try rejection(of: accepts[number]), ECANCELED) }
        expect(exits == [0, 300, 600, 900] && accepted == [0, 300])
        for promise in waits + accepts { promise.ignoringErrors() }
        for client in clients { client.close() }
    }
}
