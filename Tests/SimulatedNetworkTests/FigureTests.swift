import Glibc
import Promises
import Reactor
import ReactorIO
import SimulatedNetwork
import TestSupport
import Testing

/// What the simulation costs, in processor time of this thread. For a quiet machine and a release build: SIMULATION_FIGURES=1.
@Suite(.enabled(if: getenv("SIMULATION_FIGURES") != nil, "SIMULATION_FIGURES is not set"), .serialized)
struct FigureTests {
    private func nanoseconds(_ body: () throws -> Void) rethrows -> Double {
        func now() -> Double {
            var time = timespec()
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
            return Double(time.tv_sec) * 1e9 + Double(time.tv_nsec)
        }
        let began = now()
        try body()
        return now() - began
    }

    /// The time of a message of 64 bytes and its echo, both ends on this thread.
    private func echo(_ server: SimulatedHost?, _ client: SimulatedHost?, _ host: String) throws -> Double {
        func run<Value>(_ host: SimulatedHost?, _ body: () throws -> Value) rethrows -> Value {
            try host.map { try $0.run(body) } ?? body()
        }
        let listener = try run(server) { try Listener.bind("\(host):0") }
        _ = run(server) {
            listener.serve { connection in connection.forEachChunk { connection.write([UInt8]($0)) } }.cauterize()
        }
        let connection = try hang(run(client) { connect(to: listener.localAddress) })
        let message = [UInt8](repeating: 1, count: 64)
        func talk(_ left: Int) -> Promise<Void> {
            if left == 0 { return .value }
            return connection.write(message).then { connection.read(exactly: 64) }.then { _ in talk(left - 1) }
        }
        try hang(run(client) { talk(1000) })
        let count = 20_000
        let time = try nanoseconds { try hang(run(client) { talk(count) }) } / Double(count)
        connection.close()
        listener.close()
        return time
    }

    @Test func anEchoedMessageCostsHalfOfWhatLoopbackDoes() throws {
        var best = (simulated: Double.infinity, real: Double.infinity)
        for _ in 0..<5 {
            best.real = min(best.real, try EventLoop.withLoop { _ in try echo(nil, nil, "127.0.0.1") })
            let simulated = try withSimulatedNetwork { network in
                try echo(network.host("server"), network.host("client"), network.host("server").addresses[0].hostText)
            }
            best.simulated = min(best.simulated, simulated)
        }
        print("an echoed message: \(best.simulated) ns simulated, \(best.real) ns on loopback")
        expect(best.simulated <= best.real * 0.5)
    }

    @Test func anEmptySimulationStartsAtOnce() {
        let count = 2000
        let time = (0..<5).map { _ in
            nanoseconds { for _ in 0..<count { withSimulatedNetwork { _ in } } } / Double(count)
        }.min()!
        print("an empty simulation: \(time) ns")
        expect(time <= 50_000)
    }
}
