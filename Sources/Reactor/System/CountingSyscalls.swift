import CLinux
import ReactorLibc

/// A loop's system calls, counted by name, and repeated when a signal interrupts them.
///
/// Used only on the loop's thread. Results are the kernel's: zero or more, or `-errno`.
@usableFromInline
package final class CountingSyscalls {
    // A constant, so calling its closures retains nothing.
    @usableFromInline package let table: Syscalls
    // One counter per case of SystemCall, by number. Checking an array would cost more than counting.
    @usableFromInline let counts: UnsafeMutablePointer<Int>
    private let fork = ForkMark()

    package init(_ table: Syscalls = Syscalls()) {
        self.table = table
        counts = .allocate(capacity: SystemCall.allCases.count)
        counts.initialize(repeating: 0, count: SystemCall.allCases.count)
    }

    deinit { counts.deallocate() }

    /// Called here, where the closure is a constant; a call from another module would retain it.
    package var secondsSinceEpoch: Int { table.secondsSinceEpoch() }

    package subscript(call: SystemCall) -> Int { counts[call.number] }

    @inlinable @inline(__always)
    func count(_ call: SystemCall) { counts[call.number] &+= 1 }

    /// Counts each attempt.
    @inline(__always)
    private func retrying(_ call: SystemCall, _ body: () -> Int) -> Int {
        while true {
            count(call)
            let result = body()
            if result != -Int(EINTR) { return result }
        }
    }

    /// True in a fork of the process that created this object. The child has copies of all descriptors but shares the
    /// open files. Of all calls, only close(2) does not affect the parent.
    package var isForked: Bool { fork.isForked }

    /// Makes a call that changes state shared with a forked child's parent. In the child it fails with `EPERM`, so no
    /// cleanup there ends anything for the parent. New sockets are refused too, because the parent's loop cannot serve
    /// them in the child.
    private func unlessForked(_ call: SystemCall, _ body: () -> Int) -> Int {
        isForked ? -Int(EPERM) : retrying(call, body)
    }

    package func accept(_ fd: CInt, _ address: UnsafeMutablePointer<sockaddr_storage>) -> Int {
        retrying(.accept) { table.accept(fd, address) }
    }
    package func bind(_ fd: CInt, _ address: UnsafePointer<sockaddr>, _ length: socklen_t) -> Int {
        retrying(.bind) { table.bind(fd, address, length) }
    }
    package func changeMode(_ path: String, _ mode: mode_t) -> Int {
        retrying(.changeMode) { table.changeMode(path, mode) }
    }
    /// Not repeated: Linux releases the number even on EINTR, and it may already be reused.
    package func close(_ fd: CInt) {
        count(.close)
        _ = table.close(fd)
    }
    /// Not repeated: an interrupted connect continues in the background.
    package func startConnect(_ fd: CInt, _ address: UnsafePointer<sockaddr>, _ length: socklen_t) -> Int {
        count(.connect)
        return table.startConnect(fd, address, length)
    }
    package func epollControl(_ epoll: CInt, _ operation: CInt, _ fd: CInt, _ event: epoll_event) -> Int {
        retrying(.epollControl) { table.epollControl(epoll, operation, fd, event) }
    }
    package func epollCreate() -> Int { retrying(.epollCreate) { table.epollCreate() } }
    /// Not repeated: the loop first checks its clock and mailbox.
    package func epollWait(_ fd: CInt, _ events: UnsafeMutablePointer<epoll_event>, _ count: CInt, _ timeout: CInt)
        -> Int
    {
        self.count(.epollWait)
        return table.epollWait(fd, events, count, timeout)
    }
    package func eventCreate() -> Int { retrying(.eventCreate) { table.eventCreate() } }
    package func fileControl(_ fd: CInt, _ command: CInt, _ argument: CInt = 0) -> Int {
        retrying(.fileControl) { table.fileControl(fd, command, argument) }
    }
    package func fileStatus(_ fd: CInt, _ status: UnsafeMutablePointer<stat>) -> Int {
        retrying(.fileStatus) { table.fileStatus(fd, status) }
    }
    package func getPeerName(_ fd: CInt, _ address: UnsafeMutablePointer<sockaddr_storage>) -> Int {
        retrying(.getPeerName) { table.getPeerName(fd, address) }
    }
    package func getSocketName(_ fd: CInt, _ address: UnsafeMutablePointer<sockaddr_storage>) -> Int {
        retrying(.getSocketName) { table.getSocketName(fd, address) }
    }
    package func getQuietTime(_ fd: CInt) -> Int { retrying(.getSocketOption) { table.getQuietTime(fd) } }
    package func getSocketOption(_ fd: CInt, _ level: CInt, _ name: CInt, _ value: UnsafeMutablePointer<CInt>) -> Int {
        retrying(.getSocketOption) { table.getSocketOption(fd, level, name, value) }
    }
    package func waitingBytes(_ fd: CInt, _ direction: WaitingBytes) -> Int {
        retrying(.ioControl) { table.waitingBytes(fd, direction) }
    }
    package func kill(_ pidfd: CInt, _ process: pid_t, _ signal: CInt) -> Int {
        unlessForked(.kill) { table.kill(pidfd, process, signal) }
    }
    package func linkStatus(_ path: String, _ status: UnsafeMutablePointer<stat>) -> Int {
        retrying(.linkStatus) { table.linkStatus(path, status) }
    }
    package func listen(_ fd: CInt, _ backlog: CInt) -> Int { retrying(.listen) { table.listen(fd, backlog) } }
    package func lock(_ fd: CInt) -> Int { retrying(.lock) { table.lock(fd) } }
    package func open(_ path: String, _ flags: CInt, _ mode: mode_t) -> Int {
        retrying(.open) { table.open(path, flags, mode) }
    }
    package func pidfdOpen(_ process: pid_t) -> Int { retrying(.pidfdOpen) { table.pidfdOpen(process) } }
    package func pipe(_ ends: UnsafeMutablePointer<CInt>) -> Int { retrying(.pipe) { table.pipe(ends) } }
    /// Returns a positive number if the descriptor is ready for some of `events`, or has an error.
    package func poll(_ fd: CInt, _ events: Int16) -> Int { retrying(.poll) { table.poll(fd, events) } }
    package func read(_ fd: CInt, _ buffer: UnsafeMutableRawPointer, _ count: Int) -> Int {
        retrying(.read) { table.read(fd, buffer, count) }
    }
    // Inlined into a message's reads and writes; repeating an interrupted call is not.
    @inlinable @inline(__always)
    package func receive(_ fd: CInt, _ buffer: UnsafeMutableRawPointer, _ count: Int) -> Int {
        self.count(.receive)
        let result = table.receive(fd, buffer, count)
        return result == -Int(EINTR) ? receiveAgain(fd, buffer, count) : result
    }
    @usableFromInline @inline(never)
    func receiveAgain(_ fd: CInt, _ buffer: UnsafeMutableRawPointer, _ count: Int) -> Int {
        retrying(.receive) { table.receive(fd, buffer, count) }
    }
    package func receiveMessages(_ fd: CInt, _ messages: UnsafeMutablePointer<clinux_mmsghdr>, _ count: Int) -> Int {
        retrying(.receiveMessages) { table.receiveMessages(fd, messages, count) }
    }
    @inlinable @inline(__always)
    package func send(_ fd: CInt, _ buffer: UnsafeRawPointer, _ count: Int) -> Int {
        self.count(.send)
        let result = table.send(fd, buffer, count)
        return result == -Int(EINTR) ? sendAgain(fd, buffer, count) : result
    }
    @usableFromInline @inline(never)
    func sendAgain(_ fd: CInt, _ buffer: UnsafeRawPointer, _ count: Int) -> Int {
        retrying(.send) { table.send(fd, buffer, count) }
    }
    package func sendMore(_ fd: CInt, _ buffer: UnsafeRawPointer, _ count: Int) -> Int {
        retrying(.send) { table.sendMore(fd, buffer, count) }
    }
    package func sendFile(_ fd: CInt, _ file: CInt, _ offset: Int, _ count: Int) -> Int {
        retrying(.sendFile) { table.sendFile(fd, file, offset, count) }
    }
    /// At most 1024 pieces.
    package func sendVector(_ fd: CInt, _ pieces: UnsafePointer<iovec>, _ count: Int) -> Int {
        retrying(.sendVector) { table.sendVector(fd, pieces, count) }
    }
    package func sendMessages(_ fd: CInt, _ messages: UnsafeMutablePointer<clinux_mmsghdr>, _ count: Int) -> Int {
        retrying(.sendMessages) { table.sendMessages(fd, messages, count) }
    }
    package func setSocketOption<Value>(_ fd: CInt, _ level: CInt, _ name: CInt, _ value: Value) -> Int {
        withUnsafeBytes(of: value) { bytes in
            unlessForked(.setSocketOption) {
                table.setSocketOption(fd, level, name, bytes.baseAddress!, socklen_t(bytes.count))
            }
        }
    }
    package func shutdown(_ fd: CInt, _ how: CInt) -> Int { unlessForked(.shutdown) { table.shutdown(fd, how) } }
    package func socket(_ family: CInt, _ type: CInt) -> Int { unlessForked(.socket) { table.socket(family, type) } }
    package func socketPair(_ ends: UnsafeMutablePointer<CInt>) -> Int {
        retrying(.socketPair) { table.socketPair(ends) }
    }
    package func spawn(_ arguments: SpawnArguments) -> Int { retrying(.spawn) { table.spawn(arguments) } }
    package func timerCreate() -> Int { retrying(.timerCreate) { table.timerCreate() } }
    package func timerSet(_ fd: CInt, _ deadline: timespec) -> Int {
        unlessForked(.timerSet) { table.timerSet(fd, deadline) }
    }
    package func wait(
        _ isPidfd: Bool, _ id: CInt, keepsZombie: Bool, _ code: inout CInt, _ status: inout CInt
    ) -> Int { retrying(.waitid) { table.wait(isPidfd, id, keepsZombie, &code, &status) } }
    package func write(_ fd: CInt, _ buffer: UnsafeRawPointer, _ count: Int) -> Int {
        retrying(.write) { table.write(fd, buffer, count) }
    }
    /// At most 1024 pieces.
    package func writeVector(_ fd: CInt, _ pieces: UnsafePointer<iovec>, _ count: Int) -> Int {
        retrying(.writeVector) { table.writeVector(fd, pieces, count) }
    }
    package func unlink(_ path: String) -> Int { unlessForked(.unlink) { table.unlink(path) } }
}

extension CountingSyscalls {
    /// Returns the read end and the write end.
    package func pipe() throws(SystemError) -> (CInt, CInt) { try twoEnds(.pipe, pipe) }

    package func socketPair() throws(SystemError) -> (CInt, CInt) { try twoEnds(.socketPair, socketPair) }

    private func twoEnds(
        _ call: SystemCall, _ make: (UnsafeMutablePointer<CInt>) -> Int
    ) throws(SystemError) -> (CInt, CInt) {
        var ends: (CInt, CInt) = (-1, -1)
        let result = withUnsafeMutableBytes(of: &ends) { make($0.assumingMemoryBound(to: CInt.self).baseAddress!) }
        _ = try result.orThrow(call)
        return ends
    }
}

extension Int {
    /// Returns the kernel's result, or throws it as an error from `call`.
    package func orThrow(_ call: SystemCall, _ detail: @autoclosure () -> String? = nil) throws(SystemError) -> Int {
        guard self < 0 else { return self }
        throw SystemError(call, CInt(-self), detail: detail())
    }
}
