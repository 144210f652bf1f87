import Glibc
import Reactor

/// A program that runs in a process of its own, watched by this thread's loop.
///
/// ```swift
/// let sorter = try ChildProcess.spawn("/usr/bin/sort", standardInput: .pipe, standardOutput: .pipe)
/// sorter.standardInput!.write("b\na\n").done { sorter.standardInput!.close() }
/// sorter.exit.done { status in print(status) }
/// ```
///
/// For a program whose output is wanted as a whole there is `run`. The child keeps the loop alive until it has ended, unless it is
/// unreferenced. Letting go of this object closes our ends of the pipes, and that is all: the child runs on, and is
/// reaped when it ends. One that outlives its loop is reaped when the next child is started.
///
/// The end is watched by a pidfd, or by SIGCHLD where the kernel has none or forbids it. Children that others have
/// started are never touched. A program that ignores SIGCHLD, or waits for "any child" itself, takes the status away:
/// then it is `unknown`.
public final class ChildProcess {
    /// How a child ends.
    public typealias ExitStatus = ChildExitStatus

    /// What one of the child's three standard streams is.
    public enum Stream: Sendable {
        /// A pipe, of which we have the other end.
        case pipe
        /// `/dev/null`.
        case null
        /// Ours.
        case inherit
        /// A copy of this descriptor, which stays open here and is yours. If it does not block, the child's does not either.
        case descriptor(CInt)
    }

    /// The writing end of the child's standard input, if that is a pipe. `close()` is the end of the input.
    public let standardInput: Connection?
    /// The reading end of the child's standard output, if that is a pipe.
    public let standardOutput: Connection?
    /// The reading end of the child's standard error, if that is a pipe.
    public let standardError: Connection?

    private let end: ChildEnd

    private init(_ child: Child, _ pipes: [Connection?]) {
        end = ChildEnd(child)
        (standardInput, standardOutput, standardError) = (pipes[0], pipes[1], pipes[2])
    }

    /// Starts the program at `path`; see `spawn(named:)` for one along `PATH`.
    ///
    /// The child has the default action for each signal and blocks none; it has no descriptors but the three (with a C
    /// library before 2.34: none of the library's own, and none that is close-on-exec).
    /// - Parameters:
    ///   - arguments: without the program's own name, which is `path`.
    ///   - environment: all of the child's variables; `nil` for those of this process.
    ///   - workingDirectory: where the child starts, from where also a `path` is looked for that does not begin with a slash;
    ///     `nil` for ours.
    ///   - ownGroup: whether the child leads a process group of its own, which can be signalled as a whole, and which the
    ///     terminal's Ctrl-C does not reach.
    /// - Throws: `SystemError` of `posix_spawn`: `ENOENT`, `EACCES`, and what execve(2) says; `EINVAL` for texts with a zero
    ///   byte, and names of variables with a `=`; `EBADF` for a descriptor that is none; `ENOSYS` for a working directory with a C
    ///   library before 2.29. Of `pipe2` and the loop's own descriptors, such as `EMFILE`.
    @available(*, noasync, message: "an async function has no loop of its own")
    public static func spawn(
        _ path: String, arguments: [String] = [], environment: [String: String]? = nil,
        workingDirectory: String? = nil, standardInput: Stream = .inherit, standardOutput: Stream = .inherit,
        standardError: Stream = .inherit, ownGroup: Bool = false
    ) throws(SystemError) -> ChildProcess {
        let plan = SpawnRequest(
            path, arguments: arguments, environment: environment, workingDirectory: workingDirectory,
            hasOwnGroup: ownGroup)
        return try start(plan, [standardInput, standardOutput, standardError])
    }

    /// Starts the program `name`, which is looked for along this process's `PATH`, unless there is a slash in it; see
    /// `spawn(_:)`.
    @available(*, noasync, message: "an async function has no loop of its own")
    public static func spawn(
        named name: String, arguments: [String] = [], environment: [String: String]? = nil,
        workingDirectory: String? = nil, standardInput: Stream = .inherit, standardOutput: Stream = .inherit,
        standardError: Stream = .inherit, ownGroup: Bool = false
    ) throws(SystemError) -> ChildProcess {
        let plan = SpawnRequest(
            name, isLookedUp: true, arguments: arguments, environment: environment,
            workingDirectory: workingDirectory, hasOwnGroup: ownGroup)
        return try start(plan, [standardInput, standardOutput, standardError])
    }

    static func start(_ plan: SpawnRequest, _ streams: [Stream]) throws(SystemError) -> ChildProcess {
        let loop = EventLoop.ofCurrentThread
        var plan = plan
        var ours: [Connection?] = []
        var theirs: [CInt] = []
        // The child has copies of its own.
        defer { for fd in theirs { loop.kernel.close(fd) } }
        plan.streams = []
        for (number, stream) in streams.enumerated() {
            var connection: Connection?
            switch stream {
            case .inherit: plan.streams.append(.inherit)
            case .null: plan.streams.append(.null)
            case .descriptor(let fd): plan.streams.append(.copy(fd))
            case .pipe:
                let (own, others) = try pipe(intoChild: number == 0, loop)
                connection = own
                theirs.append(others)
                plan.streams.append(.copy(others))
            }
            ours.append(connection)
        }
        return ChildProcess(try loop.spawn(plan), ours)
    }

    /// Our end as a connection, and the child's, which blocks, as programs expect.
    private static func pipe(
        intoChild: Bool, _ loop: EventLoop
    ) throws(SystemError) -> (own: Connection, others: CInt) {
        let ends = try loop.kernel.pipe()
        let (own, others) = intoChild ? (ends.1, ends.0) : (ends.0, ends.1)
        _ = loop.kernel.fileControl(others, F_SETFL, 0)
        loop.forget(own)
        return (Connection(own, intoChild ? .writes : .reads, peer: nil, on: loop), others)
    }

    /// The child's number. After its end it may be another's.
    public var processID: CInt { end.child.process }

    /// How the child ends. Cancelling it, or a chain that waits for it, does nothing to the child; see `waitOrKill()`.
    public var exit: Guarantee<ExitStatus> { Guarantee(end.wait(kills: false)) }

    /// How the child has ended; `nil` while it runs. Asks no kernel.
    public var exitStatus: ExitStatus? { end.child.status }

    /// As `exit`; cancelled, for example by a `timeout`, it kills the child with SIGKILL, and the whole of its group if it
    /// has one of its own.
    public func waitOrKill() -> Promise<ExitStatus> { Promise(end.wait(kills: true)) }

    /// Sends a signal to the child.
    /// - Parameter wholeGroup: to all processes of its group, which must be its own.
    /// - Throws: `SystemError` of `kill`: `ESRCH` once it has ended, `EPERM`, `EINVAL`.
    public func kill(_ signal: CInt, wholeGroup: Bool = false) throws(SystemError) {
        try end.child.kill(signal, wholeGroup: wholeGroup)
    }

    /// Lets the loop end before the child. Its pipes keep the loop alive while they are waited for, as other connections do.
    public func unref() { end.child.setReferenced(false) }

    /// Makes the child keep the loop alive again.
    public func ref() { end.child.setReferenced(true) }
}

extension ChildProcess: CustomStringConvertible {
    /// `child 4711 (/bin/cat)`
    public var description: String { end.child.label }
}

/// Who waits for the end of a child. The watch holds it, so it outlives the `ChildProcess`.
private final class ChildEnd: IOProducer {
    let child: Child
    private var waiting: [(promise: PromiseCore, kills: Bool)] = []

    init(_ child: Child) {
        self.child = child
        child.onExit = { [self] status in
            let promises = waiting.map(\.promise)
            waiting = []
            for promise in promises { promise.fulfill(status) }
        }
    }

    func wait(kills: Bool) -> PromiseCore {
        if let status = child.status { return PromiseCore(value: status) }
        let promise = IOPromise(ChildExitStatus.self, self)
        waiting.append((promise, kills))
        return promise
    }

    func stop(_ promise: PromiseCore) -> Bool {
        guard let index = waiting.firstIndex(where: { $0.promise === promise }) else { return false }
        // It may have ended since; then there is nobody to kill.
        if waiting.remove(at: index).kills { try? child.kill(SIGKILL, wholeGroup: child.hasOwnGroup) }
        return true
    }
}
