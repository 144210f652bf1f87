import CLinux
import Glibc
import Reactor
import Testing

/// A child on this loop and how it ends.
final class Offspring {
    let child: Child
    private(set) var reports: [ChildExitStatus] = []

    init(_ loop: EventLoop, _ plan: ChildPlan) throws {
        child = try loop.spawn(plan)
        child.onExit = { [unowned self] in reports.append($0) }
    }
}

/// `/bin/sh` with a script.
func shell(_ script: String, streams: [ChildPlan.Stream] = [.null, .inherit, .inherit]) -> ChildPlan {
    ChildPlan("/bin/sh", arguments: ["-c", script], streams: streams)
}

/// What the child of `plan` writes to its standard output until its end, and how it ends.
func output(of plan: ChildPlan, on loop: EventLoop) throws -> (text: String, status: ChildExitStatus?) {
    let pipe = Ends.pipe()
    var plan = plan
    // The child's end blocks, as programs expect.
    _ = fcntl(pipe.far, F_SETFL, 0)
    plan.streams[1] = .copy(pipe.far)
    var bytes: [UInt8] = []
    var isOver = false
    let watch = try loop.watch(pipe.near, for: .reading) { _ in
        var buffer = [UInt8](repeating: 0, count: 65536)
        let count = read(pipe.near, &buffer, buffer.count)
        if count <= 0 { isOver = true } else { bytes += buffer[..<count] }
    }
    let offspring = try Offspring(loop, plan)
    pipe.closeFar()
    try loop.drive { isOver && !offspring.reports.isEmpty }
    watch.cancel()
    return (String(decoding: bytes, as: UTF8.self), offspring.reports.first)
}

/// Whether this process has a child of that number, dead or alive, that nobody has waited for.
func isUnreaped(_ process: pid_t) -> Bool {
    var info = siginfo_t()
    return waitid(P_PID, id_t(process), &info, WEXITED | WNOHANG | WNOWAIT) == 0
}
