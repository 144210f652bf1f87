import CLinux
import ReactorLibc
import Synchronization

/// The end of a child process.
public enum ChildExitStatus: Hashable, Sendable, CustomStringConvertible {
    /// The child exited with this code; 0 means success.
    case exited(CInt)
    /// This signal ended the child.
    case signaled(CInt)
    /// The status is unknown: other code took it, with a `wait` for any child or by ignoring SIGCHLD, or the loop ended
    /// first.
    case unknown

    /// True when the child exited with code 0.
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
    /// Starts a child process and watches for its end.
    /// - Throws: `SystemError` from `posix_spawn` for the program or working directory, such as `ENOENT`; `EBADF` for a
    ///   descriptor that is not open; any error from opening the loop's descriptors; before the child starts, any error
    ///   from preparing its watch, such as `EMFILE` from `pidfd_open`.
    package func spawn(_ request: SpawnRequest) throws(SystemError) -> Child {
        assertOwner()
        if let problem = request.problem { throw SystemError(.spawn, EINVAL, detail: "\(request.program): \(problem)") }
        try openDescriptors()
        ZombieReaper.reap()
        // A child that cannot be watched must not be started.
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

/// A child process whose end is watched by pidfd, or else by SIGCHLD. Waits only for its own pidfd or process number,
/// so the host program can wait for its other children.
///
/// A child that leads a group stays a zombie until this object is released. So no other process gets the child's
/// number, which is needed to kill the rest of the group.
package final class Child: ReadinessHandler {
    package let process: pid_t
    /// The status, once the child has ended. The child has then been reaped, unless the status is `unknown` or the
    /// child leads a group.
    package private(set) var status: ChildExitStatus?
    /// Called once with the status, but never within the call that creates the child.
    package var onExit: ((ChildExitStatus) -> Void)?
    private let program: String
    package let hasOwnGroup: Bool
    private let loop: EventLoop
    private var pidfd: CInt = -1
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
        // Another thread must not use the loop's system calls.
        let kernel = loop.isUsableHere ? loop.kernel : CountingSyscalls()
        _ = kernel.wait(process, pidfd)
        if pidfd >= 0 { kernel.close(pidfd) }
    }

    /// Sends a signal to the child, or with `wholeGroup` to its own process group.
    package func kill(_ signal: CInt, wholeGroup: Bool) throws(SystemError) {
        // A reaped child's number may belong to another process.
        guard status == nil || wholeGroup && keepsNumber else {
            throw SystemError(.kill, ESRCH, detail: "\(label) has ended")
        }
        if wholeGroup && !hasOwnGroup { throw SystemError(.kill, EINVAL, detail: "\(label) has no group of its own") }
        let result = wholeGroup ? loop.kernel.kill(-1, -process, signal) : loop.kernel.kill(pidfd, process, signal)
        _ = try result.orThrow(.kill, label)
    }

    /// True when the zombie still exists; other code may have reaped it.
    private var keepsNumber: Bool {
        guard isZombie, let status = loop.kernel.wait(process, pidfd, keepsZombie: true) else { return false }
        return status != .unknown
    }

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
        // A descriptor that was closed before its watch was cancelled may have left a registration with this number.
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
        // The child has ended but cannot be reaped yet, because a debugger that traces it must reap it first.
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

/// The resources to watch a child, acquired before the child starts. They are a pidfd for this process as a
/// placeholder, or the watch on SIGCHLD where there are no pidfds.
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
            // No pidfd: an old kernel, a forbidden call, or no free descriptor.
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

    /// Watches the started child. If another thread took the placeholder's descriptor and SIGCHLD cannot be watched
    /// either, kills the child.
    func begin(_ child: Child) throws(SystemError) {
        dropPlaceholder()
        if signalWatch == nil, child.watchByPidfd() { return }
        // The loop now retains the child, through the watch's closure and the retainer.
        keeper.child = child
        do throws(SystemError) { try watchSignal() } catch {
            _ = loop.kernel.kill(-1, child.process, SIGKILL)
            keeper.child = nil
            child.loopWillEnd()
            throw error
        }
        child.signalWatch = signalWatch.take()
        // The child may have ended before its watch began.
        loop.enqueue(InternalJob { child.check() })
    }

    func end() {
        dropPlaceholder()
        signalWatch?.cancel()
    }
}

/// Retains a child for the watch on SIGCHLD, until the child or the loop ends.
private final class ChildRetainer {
    var child: Child?

    deinit { child?.loopWillEnd() }
}
