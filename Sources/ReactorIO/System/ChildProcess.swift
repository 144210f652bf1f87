import Promises
import Reactor
import ReactorLibc

/// A program that runs in its own process, watched by this thread's loop.
///
/// ```swift
/// let sorter = try ChildProcess.spawn("/usr/bin/sort", standardInput: .pipe, standardOutput: .pipe)
/// sorter.standardInput!.write("b\na\n").done { sorter.standardInput!.close() }
/// sorter.exit.done { status in print(status) }
/// ```
///
/// To collect a program's complete output, use `run`. The child keeps the loop alive until it ends, unless `unref()`
/// has been called. Releasing this object only closes this process's ends of the pipes. The child continues, and is
/// reaped when it ends. If it outlives its loop, it is reaped when the next child is started.
///
/// A pidfd reports the child's end, or SIGCHLD does where the kernel has no pidfd or forbids it. Children that other
/// code started are never touched. If the process ignores SIGCHLD, or waits for "any child" itself, the exit status is
/// `unknown`.
public final class ChildProcess {
    /// The other end of one of the child's standard streams.
    public enum Stream: Sendable {
        /// A pipe to a `Connection` in this process.
        case pipe
        /// `/dev/null`.
        case null
        /// This process's own stream.
        case inherit
        /// A copy of this descriptor, which the caller still owns and must close. The copy is non-blocking if the
        /// original is.
        case descriptor(CInt)
    }

    /// The write end of the child's standard input, if that is a pipe. `close()` ends the input.
    public let standardInput: Connection?
    /// The read end of the child's standard output, if that is a pipe.
    public let standardOutput: Connection?
    /// The read end of the child's standard error, if that is a pipe.
    public let standardError: Connection?

    private let end: ChildEnd

    private init(_ child: Child, _ pipes: [Connection?]) {
        end = ChildEnd(child, outputs: [pipes[1], pipes[2]])
        (standardInput, standardOutput, standardError) = (pipes[0], pipes[1], pipes[2])
    }

    /// Starts a program.
    ///
    /// In the child, each signal has its default action and none is blocked. Its only descriptors are the three
    /// standard streams. (With a C library before 2.34, it also inherits other code's descriptors that are not
    /// close-on-exec.)
    /// - Parameters:
    ///   - name: a path, which contains a slash, or a name to look up in this process's `PATH`.
    ///   - arguments: the arguments after the first one, which is `name`.
    ///   - environment: all variables for the child; `nil` for this process's.
    ///   - workingDirectory: the folder in which the child starts, and to which a relative path refers; `nil` for this
    ///     process's.
    ///   - standardInput: the child's standard input.
    ///   - standardOutput: the child's standard output.
    ///   - standardError: the child's standard error.
    ///   - ownGroup: true to make the child lead a new process group. The whole group can be signalled, even after the
    ///     child's end: until this object is released, the child remains a zombie, so that its process ID is not
    ///     reused. The terminal's Ctrl-C does not reach the group.
    /// - Throws: a `SystemError` from `posix_spawn`, from `pipe2`, or from opening the loop's own descriptors, such as
    ///   `EMFILE`. `posix_spawn` fails with:
    ///   - `ENOENT`, `EACCES`, and the other errors of execve(2); `ENOENT` also for a name in no folder of `PATH`;
    ///   - `EINVAL` for a string with a zero byte, or a variable's name with a `=`;
    ///   - `EBADF` for an invalid descriptor;
    ///   - `ENOSYS` for a working directory with a C library before 2.29.
    @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
    public static func spawn(
        _ name: String, arguments: [String] = [], environment: [String: String]? = nil,
        workingDirectory: String? = nil, standardInput: Stream = .inherit, standardOutput: Stream = .inherit,
        standardError: Stream = .inherit, ownGroup: Bool = false
    ) throws(SystemError) -> ChildProcess {
        let request = SpawnRequest(
            name, arguments: arguments, environment: environment, workingDirectory: workingDirectory,
            hasOwnGroup: ownGroup)
        return try start(request, [standardInput, standardOutput, standardError])
    }

    static func start(_ request: SpawnRequest, _ streams: [Stream]) throws(SystemError) -> ChildProcess {
        let loop = EventLoop.ofCurrentThread
        var request = request
        var ownEnds: [Connection?] = []
        var childEnds: [CInt] = []
        // The child has its own copies of these descriptors.
        defer { for fd in childEnds { loop.kernel.close(fd) } }
        request.streams = []
        for (number, stream) in streams.enumerated() {
            var connection: Connection?
            switch stream {
            case .inherit: request.streams.append(.inherit)
            case .null: request.streams.append(.null)
            case .descriptor(let fd): request.streams.append(.copy(fd))
            case .pipe:
                let (own, others) = try pipe(intoChild: number == 0, loop)
                connection = own
                childEnds.append(others)
                request.streams.append(.copy(others))
            }
            ownEnds.append(connection)
        }
        return ChildProcess(try loop.spawn(request), ownEnds)
    }

    /// The child's end is blocking, as programs expect.
    private static func pipe(
        intoChild: Bool, _ loop: EventLoop
    ) throws(SystemError) -> (own: Connection, others: CInt) {
        let ends = try loop.kernel.pipe()
        let (own, others) = intoChild ? (ends.1, ends.0) : (ends.0, ends.1)
        _ = loop.kernel.fileControl(others, F_SETFL, 0)
        loop.forget(own)
        return (Connection(own, intoChild ? .writes : .reads, peer: nil, on: loop), others)
    }

    /// The child's process ID. The kernel may reuse it after the child's end.
    public var processID: CInt { end.child.process }

    /// A guarantee of the child's exit status. Reads that wait on its pipes receive its last output first. Cancelling
    /// the guarantee does not affect the child; see `waitOrKill()`.
    public var exit: Guarantee<ChildExitStatus> { Guarantee(end.wait(kills: false)) }

    /// The exit status; `nil` while the child runs. Makes no system call.
    package var exitStatus: ChildExitStatus? { end.child.status }

    /// Waits for the child's end. Cancelling the wait, for example by a `timeout`, kills the child (SIGKILL), and its
    /// own group if it leads one.
    public func waitOrKill() -> Promise<ChildExitStatus> { Promise(end.wait(kills: true)) }

    /// Sends a signal to the child, or with `wholeGroup` to all processes in the child's own group.
    /// - Throws: `SystemError` from `kill`: `ESRCH` once the child has ended, except for the whole group, `EPERM`, or
    ///   `EINVAL`.
    public func kill(_ signal: CInt, wholeGroup: Bool = false) throws(SystemError) {
        try end.child.kill(signal, wholeGroup: wholeGroup)
    }

    /// Lets the loop end before the child. Its pipes still keep the loop alive while operations on them wait.
    public func unref() { end.child.setReferenced(false) }

    /// Makes the child keep the loop alive again.
    public func ref() { end.child.setReferenced(true) }
}

extension ChildProcess: CustomStringConvertible {
    /// `child 4711 (/bin/cat)`
    public var description: String { end.child.label }
}

extension Connection {
    /// True when a read waits, and the kernel has input or the end of the stream for it.
    fileprivate var hasInputForRead: Bool { reader.isWaiting && loop.kernel.poll(fd, Int16(POLLIN)) > 0 }
}

/// The promises that wait for a child's end. The child's watch retains this object, so it outlives the `ChildProcess`.
private final class ChildEnd: CancellableWork {
    private struct Output {
        weak var connection: Connection?
    }

    let child: Child
    private let outputs: [Output]
    private var waiting = LinkedOrder<(promise: PromiseCore, kills: Bool)>()
    private var status: ChildExitStatus?
    /// The maximum number of turns by which the report is delayed. A pipe may hold a megabyte, of which a turn reads 64
    /// KiB, and another process may keep writing to it.
    private static var mostTurns: Int { 16 }

    init(_ child: Child, outputs: [Connection?]) {
        self.child = child
        self.outputs = outputs.map { Output(connection: $0) }
        child.onExit = { [self] status in tell(status, turnsLeft: Self.mostTurns) }
    }

    // Rejects the remaining promises if the loop ended before the report.
    deinit { while let (promise, _) = waiting.popFirst() { promise.producerDidEnd(.loopEnded) } }

    /// Reports the status once reads have received all output.
    private func tell(_ status: ChildExitStatus, turnsLeft: Int) {
        let loop = EventLoop.ofCurrentThread
        if turnsLeft > 0, status != .unknown, outputs.contains(where: { $0.connection?.hasInputForRead == true }) {
            // Tries again in the next turn, which delivers input before it fires timers.
            loop.schedule(after: .zero) { [self] in tell(status, turnsLeft: turnsLeft - 1) }
            return
        }
        self.status = status
        while let (promise, _) = waiting.popFirst() { promise.fulfill(status) }
    }

    func wait(kills: Bool) -> PromiseCore {
        if let status { return .fulfilled(status) }
        let promise = PromiseCore.pending(ChildExitStatus.self, by: self)
        waiting.append((promise, kills), of: promise)
        return promise
    }

    func stop(_ promise: PromiseCore) -> Bool {
        guard let wait = waiting.remove(of: promise) else { return false }
        // The child may have ended in the meantime, and then cannot be killed.
        if wait.kills { try? child.kill(SIGKILL, wholeGroup: child.hasOwnGroup) }
        return true
    }
}
