import CLinux
import ReactorLibc
import Synchronization

/// How a child process has ended.
public enum ChildExitStatus: Hashable, Sendable, CustomStringConvertible {
    /// The child exited with this code; 0 means success.
    case exited(CInt)
    /// This signal ended the child.
    case signaled(CInt)
    /// The status is not known. Other code has taken it, with a `wait` for any child or by ignoring SIGCHLD, or the
    /// loop ended before the child.
    case unknown

    /// `true` if the child exited with code 0.
    public var isSuccess: Bool { self == .exited(0) }

    /// `exited with code 1`
    public var description: String {
        switch self {
        case .exited(let code): "exited with code \(code)"
        case .signaled(let signal): "ended by signal \(signal)"
        case .unknown: "ended, with an unknown status"
        }
    }
}

extension EventLoop {
    /// Starts a child process. The loop watches for its end.
    /// - Throws: `SystemError` of `posix_spawn`, such as `ENOENT`, about the program or the working directory; `EBADF`
    ///   for a descriptor that is not open; and errors of the calls that open the loop's own descriptors and watch the
    ///   child: `EMFILE` of `pidfd_open`, before there is a child.
    package func spawn(_ request: SpawnRequest) throws(SystemError) -> Child {
        assertOwner()
        if let problem = request.problem { throw SystemError(.spawn, EINVAL, detail: "\(request.program): \(problem)") }
        try openDescriptors()
        ZombieReaper.reap()
        // A child that could not be watched must not be started.
        let watch = try ChildWatch(self)
        defer { watch.end() }
        var copies: [CInt] = []
        var temporary: [CInt] = []
        defer { for fd in temporary { kernel.close(fd) } }
        for stream in request.streams {
            guard case .copy(let fd) = stream else {
                copies.append(-1)
                continue
            }
            guard fd <= 2 else {
                copies.append(fd)
                continue
            }
            let copy = CInt(try kernel.fileControl(fd, F_DUPFD_CLOEXEC, 3).orThrow(.spawn, "descriptor \(fd)"))
            copies.append(copy)
            temporary.append(copy)
        }
        let result = kernel.spawn(SpawnArguments(request: request, copies: copies))
        let process = try result.orThrow(.spawn, request.subject(of: CInt(-result)))
        let child = Child(pid_t(process), request.program, hasOwnGroup: request.hasOwnGroup, self)
        try watch.begin(child)
        return child
    }
}

/// A child process and the watch of its end: by a pidfd, or by SIGCHLD where there is no pidfd. The child is waited for
/// by its own pidfd or process number, never as "any child", so that children of the host program are left to the host
/// program.
///
/// A child that leads a group stays a zombie until this object is released: its number, which is also the group's, then
/// belongs to no other process, so whatever is left in its group can be killed by it.
package final class Child: ReadinessHandler {
    package let process: pid_t
    /// How the child has ended; `nil` if that is not known yet. A child with a status has been reaped, unless the
    /// status is `unknown`, or the child leads a group.
    package private(set) var status: ChildExitStatus?
    /// Called once, with the status; never within the call that creates the child.
    package var onExit: ((ChildExitStatus) -> Void)?
    private let program: String
    package let hasOwnGroup: Bool
    private let loop: EventLoop
    private var pidfd: CInt = -1
    /// Whether the child has ended and has been left as a zombie.
    private var isZombie = false
    fileprivate var signalWatch: EventLoop.Watch?

    init(_ process: pid_t, _ program: String, hasOwnGroup: Bool, _ loop: EventLoop) {
        self.process = process
        self.program = program
        self.hasOwnGroup = hasOwnGroup
        self.loop = loop
    }

    deinit {
        guard isZombie else { return }
        // Another thread must not use the loop's calls.
        let kernel = loop.isUsableHere ? loop.kernel : CountingSyscalls()
        _ = kernel.wait(process, pidfd)
        if pidfd >= 0 { kernel.close(pidfd) }
    }

    /// Sends the child a signal. With `wholeGroup`, sends it to the child's process group, which must be the child's
    /// own.
    package func kill(_ signal: CInt, wholeGroup: Bool) throws(SystemError) {
        // Once the child is reaped, its number may belong to another process.
        guard status == nil || wholeGroup && keepsNumber else {
            throw SystemError(.kill, ESRCH, detail: "\(label) has ended")
        }
        if wholeGroup && !hasOwnGroup { throw SystemError(.kill, EINVAL, detail: "\(label) has no group of its own") }
        let result = wholeGroup ? loop.kernel.kill(-1, -process, signal) : loop.kernel.kill(pidfd, process, signal)
        _ = try result.orThrow(.kill, label)
    }

    /// Whether the child is still a zombie: other code may have reaped it.
    private var keepsNumber: Bool {
        guard isZombie, let status = loop.kernel.wait(process, pidfd, keepsZombie: true) else { return false }
        return status != .unknown
    }

    /// Sets whether the child keeps the loop alive.
    package func setReferenced(_ isReferenced: Bool) {
        guard status == nil, !loop.hasEnded else { return }
        if pidfd >= 0 {
            loop.setReferenced(isReferenced, of: pidfd)
        } else if isReferenced {
            signalWatch?.ref()
        } else {
            signalWatch?.unref()
        }
    }

    package var label: String { "child \(process) (\(program))" }

    // MARK: The watch

    /// Returns false if no pidfd can be opened.
    fileprivate func watchByPidfd() -> Bool {
        let fd = loop.kernel.pidfdOpen(process)
        guard fd >= 0 else { return false }
        pidfd = CInt(fd)
        // A descriptor that was closed before its watch was cancelled may have left a registration under this number.
        loop.forget(pidfd)
        do throws(SystemError) { try loop.setInterest(.reading, of: pidfd, handler: self) } catch {
            loop.kernel.close(pidfd)
            pidfd = -1
            return false
        }
        return true
    }

    package func descriptorIsReady(_ ready: Interest) -> Interest {
        check()
        guard status == nil, pidfd >= 0 else { return [] }
        // The child has ended, but this process cannot reap it yet: a debugger that traces the child comes first.
        loop.noteSpuriousReadiness(of: pidfd, progress: 0, SystemError(.waitid, EAGAIN, detail: label))
        try? loop.setInterest(.reading, of: pidfd, handler: self)
        return []
    }

    fileprivate func check() {
        guard status == nil else { return }
        guard let status = loop.kernel.wait(process, pidfd, keepsZombie: hasOwnGroup) else { return }
        isZombie = hasOwnGroup && status != .unknown
        end(status)
    }

    private func end(_ status: ChildExitStatus) {
        self.status = status
        if pidfd >= 0 {
            loop.forget(pidfd)
            if !isZombie {
                loop.kernel.close(pidfd)
                pidfd = -1
            }
        }
        signalWatch?.cancel()
        signalWatch = nil
        let handler = onExit.take()
        handler?(status)
    }

    package func loopWillEnd() {
        guard status == nil else { return }
        ZombieReaper.add(process, pidfd: pidfd)
        end(.unknown)
    }
}

/// The resources that the watch of a child needs, acquired before the child is started: a pidfd, with a pidfd of this
/// process as a placeholder, or the watch of SIGCHLD where there are no pidfds.
private final class ChildWatch {
    private let loop: EventLoop
    private let keeper = ChildRetainer()
    private var placeholder: CInt = -1
    private var signalWatch: EventLoop.Watch?

    init(_ loop: EventLoop) throws(SystemError) {
        self.loop = loop
        let result = loop.kernel.pidfdOpen(getpid())
        if result >= 0 {
            placeholder = CInt(result)
        } else {
            // The kernel is old or forbids the call, or no descriptor can be opened.
            try watchSignal()
        }
    }

    private func watchSignal() throws(SystemError) {
        if signalWatch == nil { signalWatch = try loop.onSignal(SIGCHLD) { [keeper] in keeper.child?.check() } }
    }

    private func dropPlaceholder() {
        if placeholder >= 0 { loop.kernel.close(placeholder) }
        placeholder = -1
    }

    /// Watches the child, which has been started. Another thread may have taken the descriptor that the placeholder
    /// freed; if SIGCHLD cannot be watched either, the child is killed.
    func begin(_ child: Child) throws(SystemError) {
        dropPlaceholder()
        if signalWatch == nil, child.watchByPidfd() { return }
        // From here on the retainer keeps the child, and the loop holds the retainer through the closure of the watch.
        keeper.child = child
        do throws(SystemError) { try watchSignal() } catch {
            _ = loop.kernel.kill(-1, child.process, SIGKILL)
            keeper.child = nil
            child.loopWillEnd()
            throw error
        }
        child.signalWatch = signalWatch.take()
        // The child may have ended before the watch began.
        loop.enqueue(InternalJob { child.check() })
    }

    /// Releases the resources that no child has taken over.
    func end() {
        dropPlaceholder()
        signalWatch?.cancel()
    }
}

/// Retains a child for the watch of SIGCHLD only. It is released with the loop, unless the child has ended before.
private final class ChildRetainer {
    var child: Child?

    deinit { child?.loopWillEnd() }
}
