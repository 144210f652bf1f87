import CLinux
import Synchronization

/// The suite of all tests that touch process-wide state, such as signal actions: one at a time.
@Suite(.serialized) enum ProcessWide {}

extension Trait where Self == Around {
    /// Each test runs on a separate loop in virtual time, `EventLoop.current`, which ends with it.
    static var inLoop: Self { Around { body in EventLoop.withLoop(clock: VirtualClock()) { _ in body() } } }
    /// The same with the kernel's clock.
    static var inRealTime: Self { Around { body in EventLoop.withLoop { _ in body() } } }
    /// The same on a thread that accepts signals: the threads of tests leave them to others.
    static var hearingSignals: Self {
        Around { body in withSignals(SIG_UNBLOCK) { EventLoop.withLoop { _ in body() } } }
    }
}

/// Runs `body` while this thread has another mask: of all signals unless some are named. See pthread_sigmask(3).
func withSignals<Value>(_ how: CInt, _ signals: [CInt]? = nil, _ body: () throws -> Value) rethrows -> Value {
    var (set, before) = (sigset_t(), sigset_t())
    if signals == nil { sigfillset(&set) } else { sigemptyset(&set) }
    for signal in signals ?? [] { sigaddset(&set, signal) }
    pthread_sigmask(how, &set, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    return try body()
}

extension EventLoop {
    /// The clock of a loop in virtual time.
    var virtualClock: VirtualClock {
        guard case .virtual(let clock) = clock else { preconditionFailure("the test is not `.inLoop`") }
        return clock
    }
}

/// The elements appended by several threads, in order of arrival.
final class SharedList<Element: Sendable>: Sendable {
    private let elements = Shared<[Element]>([])

    var value: [Element] { elements.value }

    func append(_ element: Element) { elements.change { $0.append(element) } }
}

/// A count that threads share.
final class Counter: Sendable {
    private let count = Atomic<Int>(0)

    var value: Int { count.load(ordering: .sequentiallyConsistent) }

    func add(_ step: Int = 1) { count.add(step, ordering: .sequentiallyConsistent) }
}

/// Two connected non-blocking descriptors; closed with this object, unless closed before.
final class Ends {
    /// The end that a test watches; the reading end of a pipe.
    private(set) var near: CInt
    /// The end on which a test plays the peer; the writing end of a pipe.
    private(set) var far: CInt

    private init(_ near: CInt, _ far: CInt) {
        self.near = near
        self.far = far
        for fd in [near, far] {
            _ = fcntl(fd, F_SETFD, FD_CLOEXEC)
            _ = fcntl(fd, F_SETFL, O_NONBLOCK)
        }
    }

    deinit {
        closeNear()
        closeFar()
    }

    static func pipe() -> Ends {
        var pair: [CInt] = [-1, -1]
        precondition(Glibc.pipe(&pair) == 0)
        return Ends(pair[0], pair[1])
    }

    static func sockets() -> Ends {
        var pair: [CInt] = [-1, -1]
        precondition(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &pair) == 0)
        return Ends(pair[0], pair[1])
    }

    func closeNear() {
        if near >= 0 { close(near) }
        near = -1
    }

    func closeFar() {
        if far >= 0 { close(far) }
        far = -1
    }
}

/// Writes `count` bytes, which must fit.
func put(_ count: Int = 1, into fd: CInt) {
    let written = write(fd, [UInt8](repeating: 7, count: count), count)
    precondition(written == count, "write: \(written), errno \(errno)")
}

/// Writes until the descriptor is full.
func fill(_ fd: CInt) {
    let chunk = [UInt8](repeating: 7, count: 65536)
    while write(fd, chunk, chunk.count) > 0 {}
}

/// One read of at most `limit` bytes, with the kernel's result: the number of bytes, or `-errno`.
@discardableResult
func take(_ limit: Int = 65536, from fd: CInt) -> Int {
    var buffer = [UInt8](repeating: 0, count: limit)
    let count = read(fd, &buffer, limit)
    return count < 0 ? -Int(errno) : count
}

/// True if poll(2) finds `fd` readable within some milliseconds.
func isReadable(_ fd: CInt, within milliseconds: CInt = 0) -> Bool {
    var entry = pollfd(fd: fd, events: Int16(POLLIN), revents: 0)
    while true {
        let count = poll(&entry, 1, milliseconds)
        if count >= 0 { return count == 1 }
    }
}

/// Makes system calls fail.
final class Failures {
    /// How often each still fails.
    var left: [SystemCall: Int]
    private let code: CInt

    init(_ left: [SystemCall: Int], _ code: CInt) {
        self.left = left
        self.code = code
    }

    func table(_ real: Syscalls = Syscalls()) -> Syscalls {
        var table = real
        table.epollCreate = { self.pass(.epollCreate) { real.epollCreate() } }
        table.eventCreate = { self.pass(.eventCreate) { real.eventCreate() } }
        table.timerCreate = { self.pass(.timerCreate) { real.timerCreate() } }
        table.timerSet = { fd, time in self.pass(.timerSet) { real.timerSet(fd, time) } }
        table.epollControl = { epoll, operation, fd, event in
            self.pass(.epollControl) { real.epollControl(epoll, operation, fd, event) }
        }
        table.epollWait = { epoll, events, count, timeout in
            self.pass(.epollWait) { real.epollWait(epoll, events, count, timeout) }
        }
        return table
    }

    private func pass(_ call: SystemCall, _ body: () -> Int) -> Int {
        guard let count = left[call], count > 0 else { return body() }
        left[call] = count - 1
        return -Int(code)
    }
}

/// Makes system calls, and records the open descriptors of the loop.
final class Ledger {
    private(set) var open: Set<CInt> = []

    var table: Syscalls {
        let real = Syscalls()
        var table = real
        table.epollCreate = { self.noteOpened(real.epollCreate()) }
        table.eventCreate = { self.noteOpened(real.eventCreate()) }
        table.timerCreate = { self.noteOpened(real.timerCreate()) }
        table.close = {
            self.open.remove($0)
            return real.close($0)
        }
        return table
    }

    private func noteOpened(_ fd: Int) -> Int {
        if fd >= 0 { open.insert(CInt(fd)) }
        return fd
    }
}

extension EventLoop {
    /// Turns until `condition` holds; fails the test, instead of blocking, if that takes too long. For the real clock
    /// only.
    func drive(
        atMost limit: Duration = .seconds(20), until condition: () -> Bool,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        var isLate = false
        let watchdog = schedule(after: limit) { isLate = true }
        defer { watchdog.cancel() }
        while !condition() && !isLate { try turn(.wait) }
        if isLate { Issue.record("the loop was driven for \(limit) in vain", sourceLocation: sourceLocation) }
    }
}

/// fork(2). Swift hides it, since little is safe in a child that shares a process of many threads.
func fork() -> pid_t {
    guard let symbol = dlsym(nil, "fork") else { fatalError("there is no fork") }
    return unsafeBitCast(symbol, to: (@convention(c) () -> pid_t).self)()
}

/// The status of a forked child that exits with the result of `body`; see wait(2).
func statusOfForkedChild(_ body: () -> CInt) -> CInt {
    let child = fork()
    if child == 0 {
        // If anything here waits forever, the parent sees the signal.
        alarm(20)
        _exit(body())
    }
    return status(of: child)
}

/// Runs `body` in a forked child.
func isTrueInForkedChild(_ body: () -> Bool) -> Bool { statusOfForkedChild { body() ? 42 : 1 } == 42 << 8 }

/// Waits for the end of a child.
func status(of child: pid_t) -> CInt {
    var status: CInt = 0
    precondition(waitpid(child, &status, 0) == child)
    return status
}
