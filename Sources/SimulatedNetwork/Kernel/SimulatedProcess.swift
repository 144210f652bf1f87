import CLinux
import Glibc
import Reactor

/// A program on a simulated machine, as its kernel sees it: the system calls of its loop.
///
/// Real descriptors, of pipes, children and files, go to the real kernel, so that a loop can wait for both.
final class SimulatedProcess {
    let kernel: SimulatedKernel
    let host: SimulatedHost.Stack
    let faults: SystemFaults
    /// Whether the machine has crashed since: no call has any effect.
    var isGone = false
    private var epolls: [CInt: SimulatedEpoll] = [:]
    private(set) var openFiles = 0

    init(_ kernel: SimulatedKernel, _ host: SimulatedHost.Stack, _ faults: SystemFaults) {
        self.kernel = kernel
        self.host = host
        self.faults = faults
    }

    /// Whether the loop would get an event if it polled now.
    var isReady: Bool { epolls.values.contains { $0.isReady } }

    var hasRoomForFile: Bool { openFiles < faults.descriptorLimit }

    func open(_ file: SimulatedFile) -> CInt {
        openFiles += 1
        return kernel.add(file)
    }

    private func close(_ number: CInt) -> Int {
        guard let file = kernel.file(number), file.process === self else { return -Int(EBADF) }
        openFiles -= 1
        kernel.remove(file)
        file.close()
        return 0
    }

    private func with(_ number: CInt, _ call: SystemCall, _ body: (SimulatedFile) -> Int) -> Int {
        guard let file = kernel.file(number), file.process === self, !isGone else { return -Int(EBADF) }
        return faults.failure(of: call, on: kernel) ?? body(file)
    }

    private static func isSimulated(_ number: CInt) -> Bool { number >= SimulatedKernel.firstNumber }

    private func socket(_ family: CInt, _ type: CInt) -> Int {
        if let failure = isGone ? -Int(EBADF) : faults.failure(of: .socket, on: kernel) { return failure }
        guard hasRoomForFile else { return -Int(EMFILE) }
        let kind = Int(type) & 0xF
        switch (family, kind) {
        case (AF_UNIX, clinux_SOCK_STREAM): return Int(open(UnixStream(self)))
        case (AF_INET, clinux_SOCK_STREAM), (AF_INET6, clinux_SOCK_STREAM): return Int(open(TCPSocket(self, family)))
        case (AF_INET, clinux_SOCK_DGRAM), (AF_INET6, clinux_SOCK_DGRAM): return Int(open(UDPSocket(self, family)))
        default: return -Int(EAFNOSUPPORT)
        }
    }

    private func pair(_ ends: UnsafeMutablePointer<CInt>) -> Int {
        if let failure = isGone ? -Int(EBADF) : faults.failure(of: .socketPair, on: kernel) { return failure }
        let (first, second) = UnixStream.pair(self)
        (ends[0], ends[1]) = (open(first), open(second))
        return 0
    }

    private func wait(
        _ number: CInt, _ events: UnsafeMutablePointer<epoll_event>, _ count: CInt, _ timeout: CInt, _ real: Syscalls
    ) -> Int {
        if let failure = faults.failure(of: .epollWait, on: kernel) { return failure }
        guard let epoll = epolls[number] else { return real.epollWait(number, events, count, timeout) }
        let taken = epoll.take(into: events, Int(count))
        if taken > 0 {
            if epoll.realRegistrations == 0 || taken == Int(count) { return taken }
            return taken + max(real.epollWait(number, events + taken, count - CInt(taken), 0), 0)
        }
        if timeout == 0 && epoll.realRegistrations == 0 { return 0 }
        return real.epollWait(number, events, count, timeout)
    }

    private func control(_ number: CInt, _ operation: CInt, _ fd: CInt, _ event: epoll_event, _ real: Syscalls) -> Int {
        guard Self.isSimulated(fd), let epoll = epolls[number] else {
            let result = real.epollControl(number, operation, fd, event)
            if result >= 0, event.data.u64 != Poller.OwnDescriptor.mailbox.rawValue {
                epolls[number]?.realRegistrations +=
                    operation == EPOLL_CTL_ADD ? 1 : operation == EPOLL_CTL_DEL ? -1 : 0
            }
            return result
        }
        // The loop's own timer, which a virtual clock never arms.
        if fd == Self.timerNumber { return 0 }
        return with(fd, .epollControl) { epoll.control(operation, $0, event) }
    }

    private static var timerNumber: CInt { .max }

    // MARK: Paths

    private func open(_ path: String, _ flags: CInt, _ mode: mode_t) -> Int {
        if let failure = isGone ? -Int(EBADF) : faults.failure(of: .open, on: kernel) { return failure }
        let present = host.nodes[path]
        if present != nil, flags & (O_CREAT | O_EXCL) == O_CREAT | O_EXCL { return -Int(EEXIST) }
        if present == nil, flags & O_CREAT == 0 { return -Int(ENOENT) }
        guard let node = present ?? host.makeNode(path, S_IFREG | mode) else { return -Int(EEXIST) }
        return Int(open(OpenNode(self, node)))
    }

    private func lock(_ file: SimulatedFile) -> Int {
        guard let node = (file as? OpenNode)?.node else { return -Int(EINVAL) }
        if let holder = node.lockHolder, holder !== file { return -Int(EWOULDBLOCK) }
        node.lockHolder = file
        return 0
    }

    private func status(_ file: SimulatedFile, _ status: UnsafeMutablePointer<stat>) -> Int {
        if let node = (file as? OpenNode)?.node {
            node.describe(status)
        } else {
            status.pointee = stat()
            status.pointee.st_mode = file.mode
        }
        return 0
    }

    private func fileControl(_ file: SimulatedFile, _ command: CInt, _ argument: CInt) -> Int {
        switch command {
        case F_GETFL: return Int(file.status)
        case F_SETFL: file.status = argument | O_RDWR
        case F_SETFD, F_GETFD: break
        default: return -Int(EINVAL)
        }
        return 0
    }

    private static func poll(_ file: SimulatedFile, _ events: Int16) -> Int {
        // The bits of poll(2) are those of epoll.
        file.readiness & (UInt32(UInt16(bitPattern: events)) | SimulatedFile.alwaysReported) != 0 ? 1 : 0
    }

    // MARK: The table

    /// The system calls for the loop of this process.
    func makeSyscalls(lookUp: @escaping (String, UInt16) -> Syscalls.LookUpAnswer) -> Syscalls {
        let real = Syscalls()
        var table = Syscalls()
        table.lookUp = lookUp
        table.random = { self.kernel.random.next() }
        // The first second of 2026, and the simulated time since.
        table.secondsSinceEpoch = { 1_767_225_600 + Int(self.kernel.now / 1_000_000_000) }
        func pass(
            _ call: SystemCall, _ other: @escaping (CInt) -> Int, _ body: @escaping (SimulatedFile) -> Int
        ) -> (CInt) -> Int {
            { Self.isSimulated($0) ? self.with($0, call, body) : other($0) }
        }
        table.accept = { fd, address in
            Self.isSimulated(fd) ? self.with(fd, .accept) { $0.accept(address) } : real.accept(fd, address)
        }
        table.bind = { fd, address, length in
            Self.isSimulated(fd) ? self.with(fd, .bind) { $0.bind(address, length) } : real.bind(fd, address, length)
        }
        table.changeMode = { path, mode in
            guard let node = self.host.nodes[path] else { return -Int(ENOENT) }
            node.mode = node.mode & S_IFMT | mode
            return 0
        }
        table.close = { fd in
            if fd == Self.timerNumber { return 0 }
            if Self.isSimulated(fd) { return self.close(fd) }
            self.epolls.removeValue(forKey: fd)?.close()
            return real.close(fd)
        }
        table.startConnect = { fd, address, length in
            Self.isSimulated(fd)
                ? self.with(fd, .connect) { $0.connect(address, length) } : real.startConnect(fd, address, length)
        }
        table.epollControl = { self.control($0, $1, $2, $3, real) }
        table.epollCreate = {
            if let failure = self.faults.failure(of: .epollCreate, on: self.kernel) { return failure }
            let fd = Self.small(real.epollCreate(), real)
            if fd >= 0 { self.epolls[CInt(fd)] = SimulatedEpoll() }
            return fd
        }
        table.epollWait = { self.wait($0, $1, $2, $3, real) }
        table.eventCreate = {
            self.faults.failure(of: .eventCreate, on: self.kernel) ?? Self.small(real.eventCreate(), real)
        }
        table.fileControl = { fd, command, argument in
            Self.isSimulated(fd)
                ? self.with(fd, .fileControl) { self.fileControl($0, command, argument) }
                : real.fileControl(fd, command, argument)
        }
        table.fileStatus = { fd, status in
            Self.isSimulated(fd) ? self.with(fd, .fileStatus) { self.status($0, status) } : real.fileStatus(fd, status)
        }
        table.getPeerName = { fd, name in
            Self.isSimulated(fd) ? self.with(fd, .getPeerName) { $0.peerName(name) } : real.getPeerName(fd, name)
        }
        table.getSocketName = { fd, name in
            Self.isSimulated(fd) ? self.with(fd, .getSocketName) { $0.localName(name) } : real.getSocketName(fd, name)
        }
        table.getSocketOption = { fd, level, name, value in
            Self.isSimulated(fd)
                ? self.with(fd, .getSocketOption) { $0.getOption(level, name, value) }
                : real.getSocketOption(fd, level, name, value)
        }
        table.linkStatus = { path, status in
            guard let node = self.host.nodes[path] else { return -Int(ENOENT) }
            node.describe(status)
            return 0
        }
        table.listen = { fd, backlog in
            Self.isSimulated(fd) ? self.with(fd, .listen) { $0.listen(Int(backlog)) } : real.listen(fd, backlog)
        }
        table.lock = pass(.lock, real.lock) { self.lock($0) }
        table.open = { self.open($0, $1, $2) }
        table.poll = { fd, events in
            Self.isSimulated(fd) ? self.with(fd, .poll) { Self.poll($0, events) } : real.poll(fd, events)
        }
        table.read = { fd, buffer, count in
            Self.isSimulated(fd)
                ? self.with(fd, .read) { $0.receive(UnsafeMutableRawBufferPointer(start: buffer, count: count)) }
                : real.read(fd, buffer, count)
        }
        table.receive = { fd, buffer, count in
            Self.isSimulated(fd)
                ? self.with(fd, .receive) { $0.receive(UnsafeMutableRawBufferPointer(start: buffer, count: count)) }
                : real.receive(fd, buffer, count)
        }
        table.receiveMessages = { fd, messages, count in
            Self.isSimulated(fd)
                ? self.with(fd, .receiveMessages) { $0.receiveMessages(messages, count) }
                : real.receiveMessages(fd, messages, count)
        }
        table.send = { fd, bytes, count in
            Self.isSimulated(fd) ? self.with(fd, .send) { $0.send(bytes, count) } : real.send(fd, bytes, count)
        }
        table.sendVector = { fd, pieces, count in
            Self.isSimulated(fd)
                ? self.with(fd, .sendVector) { $0.send(UnsafeBufferPointer(start: pieces, count: count)) }
                : real.sendVector(fd, pieces, count)
        }
        table.sendMessages = { fd, messages, count in
            Self.isSimulated(fd)
                ? self.with(fd, .sendMessages) { $0.sendMessages(messages, count) }
                : real.sendMessages(fd, messages, count)
        }
        table.setSocketOption = { fd, level, name, value, length in
            Self.isSimulated(fd)
                ? self.with(fd, .setSocketOption) {
                    $0.setOption(level, name, UnsafeRawBufferPointer(start: value, count: Int(length)))
                } : real.setSocketOption(fd, level, name, value, length)
        }
        table.shutdown = { fd, how in
            Self.isSimulated(fd) ? self.with(fd, .shutdown) { $0.shutdown(how) } : real.shutdown(fd, how)
        }
        table.socket = { self.socket($0, $1) }
        table.socketPair = { self.pair($0) }
        table.timerCreate = { self.faults.failure(of: .timerCreate, on: self.kernel) ?? Int(Self.timerNumber) }
        table.waitingBytes = { fd, direction in
            Self.isSimulated(fd)
                ? self.with(fd, .ioControl) { direction == .incoming ? $0.waiting.incoming : $0.waiting.outgoing }
                : real.waitingBytes(fd, direction)
        }
        table.write = { fd, bytes, count in
            Self.isSimulated(fd) ? self.with(fd, .write) { $0.send(bytes, count) } : real.write(fd, bytes, count)
        }
        table.writeVector = { fd, pieces, count in
            Self.isSimulated(fd)
                ? self.with(fd, .writeVector) { $0.send(UnsafeBufferPointer(start: pieces, count: count)) }
                : real.writeVector(fd, pieces, count)
        }
        table.unlink = { path in self.host.nodes.removeValue(forKey: path) == nil ? -Int(ENOENT) : 0 }
        return table
    }

    /// Refuses a real descriptor that could be taken for a simulated one.
    private static func small(_ result: Int, _ real: Syscalls) -> Int {
        if result < Int(SimulatedKernel.firstNumber) { return result }
        _ = real.close(CInt(result))
        return -Int(EMFILE)
    }
}

extension SimulatedFile {
    fileprivate func send(_ bytes: UnsafeRawPointer, _ count: Int) -> Int {
        var piece = iovec(iov_base: UnsafeMutableRawPointer(mutating: bytes), iov_len: count)
        return withUnsafePointer(to: &piece) { send(UnsafeBufferPointer(start: $0, count: 1)) }
    }
}
