import Glibc
import TestSupport
import Testing

@testable import Reactor
@testable import SimulatedNetwork

/// Random programs of socket calls have the same results on the simulated kernel as on the real one.
struct DifferentialTests {
    /// `DIFFERENTIAL_PROGRAMS` is their number; seeds start at `DIFFERENTIAL_SEED`.
    @Test func randomProgramsAnswerAsOnTheKernel() throws {
        func number(_ name: String) -> UInt64? { getenv(name).flatMap { UInt64(String(cString: $0)) } }
        let first = number("DIFFERENTIAL_SEED") ?? 1
        let count = number("DIFFERENTIAL_PROGRAMS") ?? 1000
        var differences = 0
        for seed in first..<first + count {
            var dice = SeededRandom(seed: seed)
            let program = SocketProgram(&dice)
            guard let difference = difference(program, "\(seed)") else { continue }
            differences += 1
            if differences > 9 { break }
            Issue.record("program \(seed):\n\(difference)\n\(shortened(program, "\(seed)"))")
        }
    }

    /// The first call with a different result. A difference counts if it recurs each time when the kernel has time after
    /// each call: a child process that another test starts keeps closed sockets open, and their names in use, for a
    /// moment.
    private func difference(_ program: SocketProgram, _ name: String) -> String? {
        // Of the same length each time, which bind(2) looks at.
        func prefix(_ run: Int) -> String { "difference-\(getpid())-\(name)-\(run)" }
        let network = VirtualNetwork(seed: 1)
        let simulated = network.simulate { _ in
            SocketWorld(network.test.loop.kernel.table, prefix: prefix(0)) {}.run(program)
        }
        var description: String?
        for run in 0..<4 {
            let real = SocketWorld(Syscalls(), prefix: prefix(run)) { if run > 0 { pause() } }.run(program)
            if real.contains(SocketWorld.portOfOthers) { return nil }
            guard let index = real.indices.first(where: { real[$0] != simulated[$0] }) else { return nil }
            description =
                "\(index): \(program.calls[index])\n  the kernel: \(real[index])\n  simulated:  \(simulated[index])"
        }
        return description
    }

    private func pause() {
        var entry = pollfd(fd: -1, events: 0, revents: 0)
        _ = poll(&entry, 0, 2)
    }

    /// The program without the calls that the difference does not need.
    private func shortened(_ program: SocketProgram, _ name: String) -> String {
        var program = program
        for index in program.calls.indices.reversed() {
            let shorter = program.without(index)
            if difference(shorter, name) != nil { program = shorter }
        }
        return program.calls.enumerated().compactMap { index, call in
            if case .wait(0) = call { return nil }
            return "\(index): \(call)"
        }.joined(separator: "\n")
    }
}
