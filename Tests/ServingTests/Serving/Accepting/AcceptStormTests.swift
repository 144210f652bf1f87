@testable import PromisesTestSupport

struct AcceptStormTests {
    /// Not measured by the clock, which shows how busy the machine is: a timer that is due when a turn begins fires in
    /// it, and the rest of a turn is bounded.
    @Test(.listener(turns: .max), .enabled(if: mayHaveDescriptors(700), "the hard limit of descriptors is below 700"))
    func thousandsAtOnceAreAllServedAndATimerIsNoMoreThanATurnLate() throws {
        let count = min(scaled(5000), (descriptorLimit - 300) / 2)
        let address = listener.localAddress
        let served = listener.serve { echo($0) }
        let answered = elsewhere {
            let clients = try (0..<count).map { number in
                let client = try Peer(to: address, sending: [UInt8(truncatingIfNeeded: number)])
                client.end()
                return client
            }
            return try clients.enumerated().count { try $1.readToEnd() == [UInt8(truncatingIfNeeded: $0)] }
        }
        var ticks = 0
        let timer = net.loop.schedule(every: .milliseconds(1)) { ticks += 1 }
        // A turn with due timers and a full batch of events polls for the rest first, so the bounds are per poll.
        var (mostAccepts, mostEvents, late) = (0, 0, 0)
        while answered.isPending {
            let (accepts, events, polls) = (net.calls(.accept), net.loop.metrics.events, net.calls(.epollWait))
            let seen = ticks
            let isDue = try #require(net.loop.nextDeadline) <= net.loop.now
            try net.loop.turn(.wait)
            if isDue && ticks == seen { late += 1 }
            let polled = net.calls(.epollWait) - polls
            mostAccepts = max(mostAccepts, net.calls(.accept) - accepts - 64 * (polled - 1))
            mostEvents = max(mostEvents, net.loop.metrics.events - events - 256 * (polled - 1))
        }
        timer.cancel()
        expectEqual(answered.settledValue, count)
        expect(late == 0 && ticks > 0)
        expect(mostAccepts <= 64 && mostEvents <= 256)
        try listener.end(served)
    }

    /// With a full table the kernel returns EMFILE before it looks at the backlog.
    @Test(.listener(.virtual)) func aFullTableOverAnEmptyQueueIsAPauseLikeAnother() throws {
        let served = listener.serve { echo($0) }
        let real = net.kernel.accept
        net.kernel.accept = {
            let result = real($0, $1)
            return result == -Int(EAGAIN) ? -Int(EMFILE) : result
        }
        let early = try Peer(to: listener.localAddress)
        let lines = try logged {
            try net.loop.run(until: { listener.activeConnections == 1 })
            net.settle(.seconds(1))
        }
        expectEqual(lines.count, 1)
        expectEqual(net.calls(.accept), 2, "no client arrived, so none was accepted")
        let late = try Peer(to: listener.localAddress)
        try net.loop.run(until: { listener.activeConnections == 2 })
        early.close()
        try listener.end(served, closing: [late])
    }
}
