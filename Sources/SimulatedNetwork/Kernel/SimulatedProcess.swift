import CLinux
import ReactorLibc
import Reactor

/// A program on a simulated machine, as its kernel sees it: the system calls of its loop.
///
/// Calls on real descriptors (pipes, children, files) go to the real kernel, so a loop can wait for both kinds.
final class SimulatedProcess {
    let kernel: SimulatedKernel
    let host: HostStack
    let faults: SystemFaults
    /// True when the machine has crashed; calls then have no effect.
    @exclusivity(unchecked) var isGone = false
    /// One epoll per loop.
    @exclusivity(unchecked) private var epolls: [(number: CInt, epoll: SimulatedEpoll)] = []
    @exclusivity(unchecked) private(set) var openFiles = 0

    init(_ kernel: SimulatedKernel, _ host: HostStack, _ faults: SystemFaults) {
        self.kernel = kernel
        self.host = host
        self.faults = faults
    }

    var isReady: Bool { epolls.contains { $0.epoll.isReady } }

    private func epoll(_ number: CInt) -> SimulatedEpoll? { epolls.first { $0.number == number }?.epoll }

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
        let result = faults.failure(of: call, on: host) ?? body(file)
        if result > 0 { kernel.moves &+= 1 }
        return result
    }

    private static func isSimulated(_ number: CInt) -> Bool { number >= SimulatedKernel.firstNumber }

    private func socket(_ family: CInt, _ type: CInt) -> Int {
        if let failure = isGone ? -Int(EBADF) : faults.failure(of: .socket, on: host) { return failure }
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
        if let failure = isGone ? -Int(EBADF) : faults.failure(of: .socketPair, on: host) { return failure }
        guard openFiles + 1 < faults.descriptorLimit else { return -Int(EMFILE) }
        let (first, second) = UnixStream.pair(self)
        (ends[0], ends[1]) = (open(first), open(second))
        return 0
    }

    private func wait(
        _ number: CInt, _ events: UnsafeMutablePointer<epoll_event>, _ count: CInt, _ timeout: CInt, _ real: Syscalls
    ) -> Int {
        if let failure = faults.failure(of: .epollWait, on: host) { return failure }
        guard let epoll = epoll(number) else { return real.epollWait(number, events, count, timeout) }
        let taken = epoll.take(into: events, Int(count))
        if taken > 0 {
            if epoll.realRegistrations == 0 || taken == Int(count) { return taken }
            return taken + max(real.epollWait(number, events + taken, count - CInt(taken), 0), 0)
        }
        if timeout == 0 && epoll.realRegistrations == 0 { return 0 }
        return real.epollWait(number, events, count, timeout)
    }

    private func control(_ number: CInt, _ operation: CInt, _ fd: CInt, _ event: epoll_event, _ real: Syscalls) -> Int {
        guard Self.isSimulated(fd), let epoll = epoll(number) else {
            let result = real.epollControl(number, operation, fd, event)
            if result >= 0, event.data.u64 != Poller.OwnDescriptor.mailbox.rawValue {
                epoll(number)?.realRegistrations +=
                    operation == EPOLL_CTL_ADD ? 1 : operation == EPOLL_CTL_DEL ? -1 : 0
            }
            return result
        }
        // This is the loop's own timer, which a virtual clock never arms.
        if fd == Self.timerNumber { return 0 }
        return with(fd, .epollControl) { epoll.control(operation, $0, event) }
    }

    private static var timerNumber: CInt { .max }

    // MARK: Paths

    private func open(_ path: String, _ flags: CInt, _ mode: mode_t) -> Int {
        if let failure = isGone ? -Int(EBADF) : faults.failure(of: .open, on: host) { return failure }
        let present = host.nodes[path]
        if present != nil, flags & (O_CREAT | O_EXCL) == O_CREAT | O_EXCL { return -Int(EEXIST) }
        if present == nil, flags & O_CREAT == 0 { return -Int(ENOENT) }
        guard hasRoomForFile else { return -Int(EMFILE) }
        return Int(open(OpenNode(self, present ?? host.makeNode(path, S_IFREG | mode)!)))
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
        // poll(2) uses epoll's bits.
        file.readiness & (UInt32(UInt16(bitPattern: events)) | SimulatedFile.alwaysReported) != 0 ? 1 : 0
    }

    // MARK: The table

    /// Makes the system calls for this process's loop.
    func makeSyscalls(lookUp: @escaping (String) -> (addresses: [sockaddr_storage], code: CInt, delay: Duration))
        -> Syscalls
    {
        let real = Syscalls()
        var table = Syscalls()
        table.lookUp = lookUp
        table.random = { self.kernel.random.next() }
        // Simulated time begins with the first second of 2026.
        table.secondsSinceEpoch = { 1_767_225_600 + Int(self.kernel.now / 1_000_000_000) }
        /// Calls `body` for a simulated descriptor, or else the real kernel.
        func route<each Argument>(
            _ call: SystemCall, _ other: @escaping (CInt, repeat each Argument) -> Int,
            _ body: @escaping (SimulatedFile, repeat each Argument) -> Int
        ) -> (CInt, repeat each Argument) -> Int {
            { (fd: CInt, arguments: repeat each Argument) in
                Self.isSimulated(fd)
                    ? self.with(fd, call) { body($0, repeat each arguments) } : other(fd, repeat each arguments)
            }
        }
        func made(_ call: SystemCall, _ make: @escaping () -> Int) -> Int {
            faults.failure(of: call, on: host) ?? Self.small(make(), real)
        }
        table.accept = route(.accept, real.accept) { $0.accept($1) }
        table.bind = route(.bind, real.bind) { $0.bind($1, $2) }
        table.changeMode = { path, mode in
            guard let node = self.host.nodes[path] else { return -Int(ENOENT) }
            node.mode = node.mode & S_IFMT | mode
            return 0
        }
        table.close = { fd in
            if fd == Self.timerNumber { return 0 }
            if Self.isSimulated(fd) { return self.close(fd) }
            self.epoll(fd)?.close()
            self.epolls.removeAll { $0.number == fd }
            return real.close(fd)
        }
        table.startConnect = route(.connect, real.startConnect) { $0.connect($1, $2) }
        table.epollControl = { self.control($0, $1, $2, $3, real) }
        table.epollCreate = {
            let fd = made(.epollCreate, real.epollCreate)
            if fd >= 0 { self.epolls.append((CInt(fd), SimulatedEpoll())) }
            return fd
        }
        table.epollWait = { self.wait($0, $1, $2, $3, real) }
        table.eventCreate = { made(.eventCreate, real.eventCreate) }
        table.fileControl = route(.fileControl, real.fileControl) { self.fileControl($0, $1, $2) }
        table.fileStatus = route(.fileStatus, real.fileStatus) { self.status($0, $1) }
        table.getPeerName = route(.getPeerName, real.getPeerName) { $0.peerName($1) }
        table.getSocketName = route(.getSocketName, real.getSocketName) { $0.localName($1) }
        table.getSocketOption = route(.getSocketOption, real.getSocketOption) { $0.getOption($1, $2, $3) }
        // Like a socket that is not TCP.
        table.getQuietTime = { _ in -Int(ENOPROTOOPT) }
        table.linkStatus = { path, status in
            guard let node = self.host.nodes[path] else { return -Int(ENOENT) }
            node.describe(status)
            return 0
        }
        table.listen = route(.listen, real.listen) { $0.listen(Int($1)) }
        table.lock = route(.lock, real.lock) { self.lock($0) }
        table.open = { self.open($0, $1, $2) }
        table.poll = route(.poll, real.poll) { Self.poll($0, $1) }
        // Unlike recv(2), read(2) of zero bytes does not reach the socket.
        table.read = route(.read, real.read) { $2 == 0 ? 0 : $0.receive(.init(start: $1, count: $2)) }
        table.receive = route(.receive, real.receive) { $0.receive(.init(start: $1, count: $2)) }
        table.receiveMessages = route(.receiveMessages, real.receiveMessages) { $0.receiveMessages($1, $2) }
        table.send = route(.send, real.send) { $0.send($1, $2) }
        table.sendMore = table.send
        // Unsupported, as in some of the kernel's file systems: the caller then reads the file.
        table.sendFile = route(.sendFile, real.sendFile) { _, _, _, _ in -Int(EINVAL) }
        table.sendVector = route(.sendVector, real.sendVector) { $0.send(.init(start: $1, count: $2)) }
        table.sendMessages = route(.sendMessages, real.sendMessages) { $0.sendMessages($1, $2) }
        table.setSocketOption = route(.setSocketOption, real.setSocketOption) {
            $0.setOption($1, $2, .init(start: $3, count: Int($4)))
        }
        table.shutdown = route(.shutdown, real.shutdown) { $0.shutdown($1) }
        table.socket = { self.socket($0, $1) }
        table.socketPair = { self.pair($0) }
        table.timerCreate = { self.faults.failure(of: .timerCreate, on: self.host) ?? Int(Self.timerNumber) }
        table.waitingBytes = route(.ioControl, real.waitingBytes) {
            $1 == .incoming ? $0.waiting.incoming : $0.waiting.outgoing
        }
        // Unlike sendmsg(2), writev(2) of zero bytes does not reach the socket, and `write` calls writev(2).
        table.write = route(.write, real.write) { $2 == 0 ? 0 : $0.send($1, $2) }
        table.writeVector = route(.writeVector, real.writeVector) {
            let pieces = UnsafeBufferPointer(start: $1, count: $2)
            return pieces.byteCount == 0 ? 0 : $0.send(pieces)
        }
        table.unlink = { path in self.host.nodes.removeValue(forKey: path) == nil ? -Int(ENOENT) : 0 }
        return table
    }

    /// Refuses a real descriptor in the range of simulated ones.
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
