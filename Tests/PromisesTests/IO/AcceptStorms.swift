import Glibc
import Promises
import Reactor
import Testing

/// Very many clients at once, and a table of descriptors that is full although nobody waits.
@Suite struct AcceptStorms {
    @Test func aStormIsTakenInPartsThatLeaveTimeForTheRest() throws {
        try withNetwork(turns: 3000) { net in
            let listener = try net.listen()
            let served = listener.serve { echo($0) }
            let clients = try (0..<300).map { number in
                let client = try Peer(to: listener.localAddress)
                try client.send([UInt8(truncatingIfNeeded: number)])
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
            // Timers and other descriptors have their turn in each.
            #expect(turns >= 5)
            #expect(most <= 64)
            let replies = elsewhere { try clients.map { try $0.readToEnd() } }
            #expect(try hang(replies, timeout: patience) == (0..<300).map { [UInt8(truncatingIfNeeded: $0)] })
            listener.close()
            try hang(served, timeout: patience)
        }
    }

    /// With a full table the kernel answers EMFILE before it looks whether anybody waits.
    @Test func aFullTableOverAnEmptyQueueIsAPauseLikeAnother() throws {
        let clock = VirtualClock()
        try withNetwork(clock: clock) { net in
            let listener = try net.listen()
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
            #expect(lines.count == 1)
            #expect(net.calls(.accept) == 2, "nobody came, so nobody was looked for")
            let late = try Peer(to: listener.localAddress)
            try net.loop.run(until: { listener.activeConnections == 2 })
            early.close()
            late.close()
            listener.close()
            try hang(served)
        }
    }
}
