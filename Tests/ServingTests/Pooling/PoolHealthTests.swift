@testable import PromisesTestSupport

struct PoolHealthTests {
    @Test(.network(.virtual), arguments: [false, true]) func thePeerOfAnIdleConnectionGoesAndItIsClosedAtOnce(
        resets: Bool
    ) throws {
        let pool = Pool<Connection>()
        try hang(pool.ask("a", server.address))
        let open = net.ledger.open.count
        var reads = 0
        let (real, accepted) = (net.kernel.receive, Set(net.ledger.accepted))
        net.kernel.receive = { fd, buffer, count in
            if !accepted.contains(fd) { reads += 1 }
            return real(fd, buffer, count)
        }
        server.accepted[0].write("unasked").cauterize()
        for _ in 0..<3 { try net.loop.turn(.poll) }
        expect(pool.counts.idle == 1 && reads == 0, "nothing is read ahead")
        if resets { server.accepted[0].abort() } else { server.accepted[0].close(linger: .zero) }
        for _ in 0..<3 { try net.loop.turn(.poll) }
        expectEqual(pool.counts.all, [0, 0, 0, 0])
        expectEqual(net.ledger.open.count, open - 2, "both descriptors are closed")
    }

    @Test(.network(.virtual), arguments: [false, true]) func aConnectionWhosePeerHasGoneUnseenIsNotUsed(hasInput: Bool)
        throws
    {
        let pool = Pool<Connection>()
        try hang(pool.ask("a", server.address))
        // The loop has not polled since: only the check before the use can notice it.
        let peer = server.accepted[0]
        if hasInput { peer.write("you are too slow\n").cauterize() } else { peer.abort() }
        let reply = pool.ask("b", server.address)
        expectEqual(pool.counts.all, [1, 0, 0, 1])
        expectEqual(try hang(reply), "b")
        expectEqual(server.accepted.count, 2)
    }

    @Test(.network(.virtual)) func aCheckOfTheUsersDecidesAndItsConnectionIsReplaced() throws {
        var checks: [Promise<Void>] = [.value, Promise(error: Flaw(1)), .value]
        let pool = Pool<Connection>(check: { connection in
            let answer = checks.removeFirst()
            return talk("ping", connection).then { _ in answer }
        })
        for text in ["a", "b", "c", "d"] { expectEqual(try hang(pool.ask(text, server.address)), text) }
        expectEqual(server.lines, ["a", "ping", "b", "ping", "c", "ping", "d"])
        expect(server.accepted.count == 2 && checks.isEmpty)
        pool.close()
    }

    @Test(.network(.virtual)) func aCheckThatThrowsOrLeavesAReadIsAFailure() throws {
        var calls = 0
        let pool = Pool<Connection>(check: { connection in
            calls += 1
            if calls == 1 { throw Flaw(1) }
            connection.read().done { _ in }
            return .value
        })
        for text in ["a", "b", "c"] { expectEqual(try hang(pool.ask(text, server.address)), text) }
        expect(server.accepted.count == 3 && calls == 2)
        pool.close()
    }

    @Test(.network(.virtual)) func aCheckWithoutAnswerEndsWithItsRequest() throws {
        let pool = Pool<Connection>(
            limits: PoolLimits(perKey: 1, waitTimeout: .seconds(5), checkTimeout: nil),
            check: { connection in connection.readLine().asVoid() })
        try hang(pool.ask("a", server.address))
        let late = pool.ask("b", server.address)
        net.settle(.seconds(1))
        let next = pool.ask("c", server.address)
        expectEqual(pool.counts.all, [0, 1, 0, 2])
        #expect(throws: PoolError.self) { try hang(late) }
        expectEqual(try hang(next), "c")
        // A cancelled request also ends its check.
        let cancelled = pool.ask("d", server.address)
        net.settle(.milliseconds(1))
        cancelled.cancel()
        expectEqual(try hang(pool.ask("e", server.address)), "e")
        expectEqual(server.accepted.count, 3)
        pool.close()
    }

    @Test(.network(.virtual)) func aPoolMayBeUsedAndTheLoopTurnedInACheck() throws {
        let (one, two) = (try LineServer(net), try LineServer(net))
        var pool: Pool<Connection>?
        pool = Pool<Connection>(check: { _ in
            if pool?.counts.waiting == 1 { try hang(pool!.ask("inner", two.address)) }
            return .value
        })
        try hang(pool!.ask("a", one.address))
        expectEqual(try hang(pool!.ask("b", one.address)), "b")
        expectEqual(two.lines, ["inner"])
        pool?.close()
        pool = nil
        for server in [one, two] { server.end() }
    }

    @Test(.listener(.virtual)) func anIdleConnectionDoesNotHideAHangThatNothingEnds() throws {
        let pool = Pool<Connection>()
        let request = pool.with(.address(listener.localAddress)) { _ in Promise<Void>.value }
        _ = try net.accept(from: listener)
        listener.close()
        try hang(request)
        expect(pool.counts.idle == 1 && !net.loop.isAlive && !net.loop.canWakeItself)
        let (promise, resolver) = Promise<Void>.pending()
        let lines = logged { #expect(throws: PromiseError.timedOut) { try hang(promise, timeout: .seconds(5)) } }
        expectEqual(lines.count, 1, "\(lines)")
        resolver.fulfill(())
        pool.close()
        expect(!net.loop.canWakeItself)
        // Other activity of the loop counts again.
        let timer = net.loop.schedule(after: .seconds(9)) {}
        timer.unref()
        expect(net.loop.canWakeItself)
        timer.cancel()
    }

    @Test(.network(.virtual)) func aReuseCostsOneSystemCallBesidesTheRequest() throws {
        let pool = Pool<Connection>()
        for _ in 0..<3 { try hang(pool.ask("a", server.address)) }
        let before = net.loop.metrics.systemCalls
        for _ in 0..<10 { try hang(pool.ask("a", server.address)) }
        let after = net.loop.metrics.systemCalls
        func count(_ call: SystemCall) -> Int { (after[call] ?? 0) - (before[call] ?? 0) }
        // On both sides: a send and a receive for the request, and for its answer.
        expect(count(.poll) == 10 && count(.send) == 20 && count(.receive) == 20)
        expect(count(.epollControl) == 0 && count(.getSocketOption) == 0)
    }

    @Test(.network(.virtual)) func aRequestOfWhichAByteWasAnsweredIsNotMadeAgain() throws {
        let server = try LineServer.forgetful(net, answering: "a")
        let pool = Pool<Connection>()
        try hang(pool.ask("first", server.address))
        #expect(throws: StreamError.self) { try hang(pool.ask("again", server.address, isIdempotent: true)) }
        expectEqual(server.lines, ["first", "again"])
        pool.close()
        server.end()
    }

    @Test(.network(.virtual)) func aFailureOfANewConnectionOrOfTheBodyIsFinal() throws {
        let server = try LineServer.forgetful(net)
        let pool = Pool<Connection>()
        #expect(throws: (any Error).self) { try hang(pool.ask("again", server.address, isIdempotent: true)) }
        expectEqual(server.lines, ["again"])
        try hang(pool.ask("first", server.address))
        var calls = 0
        let request = pool.with(.address(server.address), isIdempotent: true) { _ -> Promise<Void> in
            calls += 1
            throw Flaw(3)
        }
        expect(request, failsWith: Flaw(3))
        expectEqual(calls, 1)
        pool.close()
        server.end()
    }

    @Test(.network(.virtual)) func aTimeoutOfTheConnectionIsNoReasonToAskAgain() throws {
        server.answer = { line, connection in line == "first" ? connection.write("first\n") : .value }
        let pool = Pool<Connection>()
        try hang(pool.ask("first", server.address))
        let silent = pool.with(.address(server.address), isIdempotent: true) { connection in
            connection.idleTimeout = .seconds(3)
            return talk("silence", connection)
        }
        expectEqual(try rejection(of: silent), ETIMEDOUT)
        expectEqual(server.lines, ["first", "silence"])
    }

    @Test(.network(.virtual)) func aServerThatAlwaysGivesUpEndsTheRetries() throws {
        server.answer = { line, connection in
            if line == "first" { return connection.write("first\n") }
            connection.close(linger: .zero)
            return .value
        }
        let pool = Pool<Connection>(limits: PoolLimits(perKey: 4))
        try hang(when(fulfilled: (0..<4).map { _ in pool.ask("first", server.address) }))
        expectEqual(pool.counts.idle, 4)
        #expect(throws: (any Error).self) { try hang(pool.ask("again", server.address, isIdempotent: true)) }
        // Four idle connections and a new one.
        expectEqual(server.lines.count { $0 == "again" }, 5)
        expectEqual(pool.counts.all, [0, 0, 0, 0])
    }
}
