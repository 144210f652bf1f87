@testable import PromisesTestSupport

/// Very many clients at once, and a full table of descriptors with an empty backlog.
struct AcceptStormTests {
    @Test(.enabled(if: mayHaveDescriptors(2000), "the hard limit of descriptors is below 2,000"))
    func aStormIsTakenInPartsThatLeaveTimeForTheRest() throws {
        try withListener(turns: 3000) { net, listener in
            let served = listener.serve { echo($0) }
            let clients = try (0..<300).map { number in
                let client = try Peer(to: listener.localAddress, sending: [UInt8(truncatingIfNeeded: number)])
                client.end()
                return client
            }
            var (most, turns) = (0, 0)
            while net.calls(.accept) < 300 {
                let calls = net.calls(.accept)
                try net.loop.turn(.upTo(.seconds(5)))
                most = max(most, net.calls(.accept) - calls)
                turns += 1
            }
            // Timers and other descriptors are served in each.
            expect(turns >= 5)
            expect(most <= 64)
            let replies = elsewhere { try clients.map { try $0.readToEnd() } }
            expectEqual(try hang(replies, timeout: patience), (0..<300).map { [UInt8(truncatingIfNeeded: $0)] })
            try listener.end(served)
        }
    }

    /// Not measured by the clock, which shows how busy the machine is: a timer that is due when a turn begins fires in
    /// it, and the rest of a turn is bounded.
    @Test(.enabled(if: mayHaveDescriptors(700), "the hard limit of descriptors is below 700"))
    func thousandsAtOnceAreAllServedAndATimerIsNoMoreThanATurnLate() throws {
        let count = min(scaled(5000), (descriptorLimit - 300) / 2)
        try withListener(turns: .max) { net, listener in
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
    }

    /// With a full table the kernel returns EMFILE before it looks at the backlog.
    @Test func aFullTableOverAnEmptyQueueIsAPauseLikeAnother() throws {
        try withListener(clock: VirtualClock()) { net, listener in
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
}
