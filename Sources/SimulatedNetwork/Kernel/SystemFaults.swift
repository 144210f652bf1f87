import ReactorLibc
import Reactor

/// System calls that fail on a simulated host, or move only some of the bytes.
///
/// ```swift
/// server.faults.fail(.accept, with: EMFILE, calls: 3...5)
/// server.faults.fail(.send, with: ENOBUFS, probability: 0.01)
/// server.faults.shortCounts = 0.2
/// ```
///
/// A failing call has no other effect, as in the kernel. See man pages for possible errors. The library repeats a call
/// after EINTR, as after a signal.
public final class SystemFaults {
    private struct Rule {
        let call: SystemCall
        let code: CInt
        let calls: ClosedRange<Int>?
        let probability: Double
        var seen = 0
    }

    @exclusivity(unchecked) private var rules: [Rule] = []
    /// The probability that a call moves only some of a stream's bytes. Zero by default.
    @exclusivity(unchecked) public var shortCounts = 0.0
    /// The maximum number of open simulated descriptors. Opening more fails with EMFILE.
    public var descriptorLimit = Int.max
    private let kernel: SimulatedKernel

    init(_ kernel: SimulatedKernel) { self.kernel = kernel }

    /// Makes some calls fail, counted from now on.
    /// - Parameters:
    ///   - call: the system call.
    ///   - code: the errno.
    ///   - calls: the failing calls, numbered from 1. `1 ... .max` is every call from now on.
    public func fail(_ call: SystemCall, with code: CInt, calls: ClosedRange<Int> = 1...1) {
        rules.append(Rule(call: call, code: code, calls: calls, probability: 1))
    }

    /// Makes random calls fail from now on.
    /// - Parameters:
    ///   - call: the system call.
    ///   - code: the errno.
    ///   - probability: the probability that a call fails.
    public func fail(_ call: SystemCall, with code: CInt, probability: Double) {
        rules.append(Rule(call: call, code: code, calls: nil, probability: probability))
    }

    /// Clears all faults of this host.
    public func clear() {
        rules = []
        shortCounts = 0
        descriptorLimit = .max
    }

    func failure(of call: SystemCall, on host: HostStack) -> Int? {
        if rules.isEmpty { return nil }
        for index in rules.indices where rules[index].call == call {
            rules[index].seen += 1
            let rule = rules[index]
            let isMeant = rule.calls?.contains(rule.seen) ?? kernel.random.happens(rule.probability)
            if !isMeant { continue }
            kernel.transcript.note(kernel.now, call, rule.code, on: host.name)
            return -Int(rule.code)
        }
        return nil
    }

    func shorten(_ count: Int) -> Int {
        count > 1 && kernel.random.happens(shortCounts) ? 1 + kernel.random.number(below: count - 1) : count
    }
}
