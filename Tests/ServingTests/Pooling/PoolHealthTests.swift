@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

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

    @Test(.network(.virtual)) func aConnectionWhoseCheckFailsIsReplaced() throws {
        var checks = 0
        let pool = Pool<Connection>(check: { connection in
            checks += 1
            switch checks {
            case 2: throw Flaw(1)
            case 3: connection.read().done { _ in }
            case 4: return talk("refused", connection).then { _ in Promise(error: Flaw(1)) }
            default: return talk("ping", connection).asVoid()
            }
            return .value
        })
        for text in ["a", "b", "c", "d", "e", "f"] { expectEqual(try hang(pool.ask(text, server.address)), text) }
        expectEqual(server.lines, ["a", "ping", "b", "c", "d", "refused", "e", "ping", "f"])
        expectEqual(server.accepted.count, 4)
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
        pool = nil
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
}
