import CLinux
import Testing

/// A child on this loop, and its exit status.
final class Offspring {
    let child: Child
    private(set) var reports: [ChildExitStatus] = []

    init(_ loop: EventLoop, _ request: SpawnRequest) throws {
        child = try loop.spawn(request)
        child.onExit = { [unowned self] in reports.append($0) }
    }
}

/// `/bin/sh` with a script.
func shell(_ script: String, streams: [SpawnRequest.StandardStream] = [.null, .inherit, .inherit]) -> SpawnRequest {
    SpawnRequest("/bin/sh", arguments: ["-c", script], streams: streams)
}

/// The standard output of the child of `request` up to its end.
func output(of request: SpawnRequest, on loop: EventLoop) throws -> String {
    let pipe = Ends.pipe()
    var request = request
    // The child's end blocks, as programs expect.
    _ = fcntl(pipe.far, F_SETFL, 0)
    request.streams[1] = .copy(pipe.far)
    var output = ""
    var isOver = false
    let watch = try loop.watch(pipe.near, for: .reading) { _ in
        let more = text(from: pipe.near)
        output += more
        isOver = more.isEmpty
    }
    let offspring = try Offspring(loop, request)
    pipe.closeFar()
    try loop.drive { isOver && !offspring.reports.isEmpty }
    watch.cancel()
    return output
}

/// A child unknown to any loop.
func hostsChild(_ program: String, _ arguments: String...) -> pid_t {
    var process = pid_t()
    var arguments = ([program] + arguments).map { strdup($0) } + [nil]
    defer { for argument in arguments { free(argument) } }
    expectEqual(posix_spawn(&process, program, nil, nil, &arguments, nil), 0)
    return process
}

/// True if this process has a child with that number, alive or dead, that has not been waited for.
func isUnreaped(_ process: pid_t) -> Bool {
    var info = siginfo_t()
    return waitid(P_PID, id_t(process), &info, WEXITED | WNOHANG | WNOWAIT) == 0
}

/// Waits until a child has ended, without taking its status.
func awaitDeath(of process: pid_t, place: SourceLocation = #_sourceLocation) {
    var info = siginfo_t()
    #expect(waitid(P_PID, id_t(process), &info, WEXITED | WNOWAIT) == 0, sourceLocation: place)
}

/// The ways in which a loop watches its children.
enum WayToWatch: CaseIterable {
    case pidfd, oldPidfd, signal, forbidden

    func withLoop(_ body: (EventLoop) throws -> Void) throws {
        var calls = Syscalls()
        let real = calls
        switch self {
        case .pidfd: break
        case .oldPidfd:
            calls.wait = { $0 ? -Int(EINVAL) : real.wait($0, $1, $2, &$3, &$4) }
        case .signal: calls.pidfdOpen = { _ in -Int(ENOSYS) }
        case .forbidden: calls.pidfdOpen = { _ in -Int(EPERM) }
        }
        // The way by SIGCHLD needs a thread that takes signals.
        try withSignals(SIG_UNBLOCK) { try EventLoop.withLoop(syscalls: calls, body) }
    }
}
