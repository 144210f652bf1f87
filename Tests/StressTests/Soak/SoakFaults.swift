@testable import PromisesTestSupport

/// Stands between a loop and the kernel, injects random errors and short counts, and records the conversations that
/// they hit.
final class SoakFaults {
    /// True if faults happen.
    var isOn = false
    /// True if every conversation may have been hit, for example by the end of the listener.
    var allAreHarmed = false
    /// The number of faults of each kind.
    private(set) var counts: [String: Int] = [:]
    /// Calls that moved bytes, or were prevented from it: reasons for a loop to turn.
    private(set) var progress = 0
    /// Calls that should not have been made: reads after the end, writes after a failure.
    private(set) var complaints: [String] = []

    private var dice: SplitMix64
    /// A fault happens once in this number of calls.
    private let rarity: Int
    /// The maximum number of bytes that one call moves.
    let most: Int
    private let real = Syscalls()
    private var conversations: [CInt: SoakConversation] = [:]
    private var harmed: Set<SoakConversation> = []
    /// The conversation whose pairs and pipes are being made.
    private var made: SoakConversation?
    /// Clients that have not half-closed.
    private var speaking: Set<CInt> = []
    /// A socket of the listener, for which epoll may also lack room.
    var listener: CInt = -1
    /// Descriptors that deliver nothing more, and those that accept nothing more.
    private var ended: Set<CInt> = []
    private var failed: Set<CInt> = []

    init(seed: UInt64) {
        dice = SplitMix64(seed)
        rarity = dice.pick([5, 10, 20, 50, 200, 1000])
        most = dice.pick([1, 7, 100, 5000, .max, .max, .max])
    }

    /// Without a name it may have been any of them.
    func harm(_ conversation: SoakConversation?) {
        if let conversation, conversation != .nameless { harmed.insert(conversation) } else { allAreHarmed = true }
    }

    func isHarmed(_ conversation: SoakConversation) -> Bool { allAreHarmed || harmed.contains(conversation) }

    /// The pairs and pipes made by `body` belong to one conversation.
    func making<Result>(_ conversation: SoakConversation, _ body: () throws -> Result) rethrows -> Result {
        made = conversation
        defer { made = nil }
        return try body()
    }

    var total: Int { counts.values.reduce(0, +) }

    /// The calls for a ledger.
    func syscalls() -> Syscalls {
        var table = real
        table.accept = { self.noted(self.accept($0, $1)) }
        table.bind = { self.hits("bind") ? -Int(self.dice.pick([EADDRINUSE, ENOMEM])) : self.real.bind($0, $1, $2) }
        table.close = { self.close($0) }
        // Closures, since the type of an event cannot be named here.
        table.epollControl = { epoll, operation, fd, event in
            if let trouble = self.troubleOfRegistering(fd, operation) { return trouble }
            return self.real.epollControl(epoll, operation, fd, event)
        }
        table.epollWait = { epoll, events, count, timeout in
            let isHit = self.hits("epoll_wait")
            // Only a wait can be interrupted.
            if isHit && timeout != 0 && self.dice.once(in: 2) { return -Int(EINTR) }
            let count = isHit ? CInt(1 + self.dice.below(3)) : count
            let result = self.real.epollWait(epoll, events, count, timeout)
            if timeout != 0 || result != 0 { return result }
            // Bytes between two sockets may need the processor first; a virtual clock would run ahead of them.
            sched_yield()
            return self.real.epollWait(epoll, events, count, 0)
        }
        table.getSocketName = { self.hits("getsockname") ? -Int(ENOBUFS) : self.real.getSocketName($0, $1) }
        table.getSocketOption = { self.getSocketOption($0, $1, $2, $3) }
        table.pipe = { ends in self.opened("pipe2", ends) { self.real.pipe(ends) } }
        table.read = { fd, buffer, count in self.read(fd, count) { self.real.read(fd, buffer, $0) } }
        table.receive = { fd, buffer, count in self.receive(fd, count) { self.real.receive(fd, buffer, $0) } }
        table.send = { fd, bytes, count in self.send(fd, count) { self.real.send(fd, bytes, $0) } }
        table.sendMore = { fd, bytes, count in self.send(fd, count) { self.real.sendMore(fd, bytes, $0) } }
        table.sendVector = { fd, pieces, count in
            let all = UnsafeBufferPointer(start: pieces, count: count)
            return self.send(fd, all.byteCount) { most in
                let first = all.prefix(ofBytes: most)
                return self.real.sendVector(fd, first, first.count)
            }
        }
        table.setSocketOption = {
            self.hits("setsockopt") ? -Int(ENOBUFS) : self.real.setSocketOption($0, $1, $2, $3, $4)
        }
        table.shutdown = { fd, how in
            self.speaking.remove(fd)
            return self.real.shutdown(fd, how)
        }
        table.socket = { family, type in
            if !self.hits("socket") { return self.real.socket(family, type) }
            return -Int(self.dice.pick([EMFILE, ENFILE, ENOBUFS, ENOMEM, EACCES]))
        }
        table.socketPair = { ends in self.opened("socketpair", ends) { self.real.socketPair(ends) } }
        table.startConnect = { self.startConnect($0, $1, $2) }
        table.timerCreate = {
            if !self.hits("timerfd_create") { return self.real.timerCreate() }
            return -Int(self.dice.pick([EMFILE, ENFILE, ENOMEM]))
        }
        table.write = { fd, bytes, count in self.write(fd, count) { self.real.write(fd, bytes, $0) } }
        table.writeVector = { fd, pieces, count in
            let all = UnsafeBufferPointer(start: pieces, count: count)
            return self.write(fd, all.byteCount) { most in
                let first = all.prefix(ofBytes: most)
                return self.real.writeVector(fd, first, first.count)
            }
        }
        return table
    }

    // MARK: The dice

    private func hits(_ call: String) -> Bool {
        guard isOn, dice.once(in: rarity) else { return false }
        counts[call, default: 0] += 1
        progress += 1
        return true
    }

    private func noted(_ result: Int) -> Int {
        if result != -Int(EAGAIN) { progress += 1 }
        return result
    }

    private func harm(_ fd: CInt) { harm(conversations[fd]) }

    // MARK: Descriptors that come and go

    private func accept(_ fd: CInt, _ address: UnsafeMutablePointer<sockaddr_storage>) -> Int {
        let isHit = hits("accept4")
        if isHit {
            switch dice.below(8) {
            case 0: return -Int(dice.pick([EMFILE, ENFILE, ENOBUFS, ENOMEM]))
            case 1: return -Int(EAGAIN)
            case 2: return -Int(EINTR)
            case 3, 4, 5: return -Int(dice.pick([ECONNABORTED, EPROTO, EPERM, ENETDOWN, EHOSTUNREACH, ETIMEDOUT]))
            default: break
            }
        }
        let result = real.accept(fd, address)
        guard result >= 0 else { return result }
        let client = CInt(result)
        conversations[client] = SoakConversation(client: SocketAddress(address.pointee))
        guard isHit else { return result }
        // The client has gone before it was accepted.
        harm(client)
        conversations[client] = nil
        _ = Glibc.close(client)
        return -Int(ECONNABORTED)
    }

    private func close(_ fd: CInt) -> Int {
        // Such as a client that cancels its connect: the server may have it already, and be ended while it waits for a
        // word.
        if speaking.remove(fd) != nil { harm(fd) }
        conversations[fd] = nil
        ended.remove(fd)
        failed.remove(fd)
        // From now on the number may belong to another file.
        if fd == listener { listener = -1 }
        let result = real.close(fd)
        // Linux has closed it nevertheless.
        return hits("close") ? -Int(dice.pick([EINTR, EIO])) : result
    }

    private func troubleOfRegistering(_ fd: CInt, _ operation: CInt) -> Int? {
        // EPOLL_CTL_ADD: a modification cannot fail, and without its own descriptors there is no loop. The fault is
        // harmless: the registration is made later.
        guard operation == 1, conversations[fd] != nil || fd == listener, hits("epoll_ctl") else { return nil }
        return -Int(dice.pick([ENOMEM, ENOSPC]))
    }

    private func getSocketOption(_ fd: CInt, _ level: CInt, _ name: CInt, _ value: UnsafeMutablePointer<CInt>) -> Int {
        guard name == SO_ERROR, hits("SO_ERROR") else { return real.getSocketOption(fd, level, name, value) }
        harm(fd)
        value.pointee = dice.pick([ECONNREFUSED, ETIMEDOUT, EHOSTUNREACH])
        return 0
    }

    private func startConnect(_ fd: CInt, _ address: UnsafePointer<sockaddr>, _ length: socklen_t) -> Int {
        let isHit = hits("connect")
        if isHit && dice.once(in: 2) { return -Int(dice.pick(Self.connectErrors)) }
        let result = noted(real.startConnect(fd, address, length))
        var storage = sockaddr_storage()
        if real.getSocketName(fd, &storage) >= 0 {
            conversations[fd] = SoakConversation(client: SocketAddress(storage))
        }
        speaking.insert(fd)
        return isHit && result == -Int(EINPROGRESS) ? -Int(EINTR) : result
    }

    // EAGAIN comes from a Unix listener whose backlog is full: the connect is retried.
    private static var connectErrors: [CInt] { [ECONNREFUSED, ENETUNREACH, EADDRNOTAVAIL, ETIMEDOUT, EAGAIN] }

    /// A call that makes a pair or a pipe.
    private func opened(_ call: String, _ ends: UnsafeMutablePointer<CInt>, _ make: () -> Int) -> Int {
        if hits(call) { return -Int(dice.pick([EMFILE, ENFILE, ENOMEM])) }
        let result = make()
        if result >= 0 { for end in 0..<2 { conversations[ends[end]] = made ?? .nameless } }
        return result
    }

    // MARK: Bytes that come and go

    private func receive(_ fd: CInt, _ count: Int, _ call: (Int) -> Int) -> Int {
        move("recv", fd, count, failingWith: [ECONNRESET, ETIMEDOUT, ENOMEM], over: &ended, call)
    }

    private func read(_ fd: CInt, _ count: Int, _ call: (Int) -> Int) -> Int {
        move("read", fd, count, failingWith: [EIO, ENOMEM], over: &ended, call)
    }

    private func send(_ fd: CInt, _ count: Int, _ call: (Int) -> Int) -> Int {
        move("send", fd, count, failingWith: [EPIPE, ECONNRESET, ENOBUFS, ETIMEDOUT], over: &failed, call)
    }

    private func write(_ fd: CInt, _ count: Int, _ call: (Int) -> Int) -> Int {
        move("write", fd, count, failingWith: [EPIPE, EIO, ENOMEM], over: &failed, call)
    }

    /// Makes `call` for this number of bytes or fewer, or makes it fail. `over` are the descriptors for which it must
    /// not be made again.
    private func move(
        _ name: String, _ fd: CInt, _ count: Int, failingWith errors: [CInt], over: inout Set<CInt>,
        _ call: (Int) -> Int
    ) -> Int {
        if over.contains(fd) { complaints.append("\(name)(\(fd)) after the end") }
        if count < 1 { complaints.append("\(name)(\(fd)) of \(count) bytes") }
        var count = min(count, most)
        if hits(name) {
            switch dice.below(8) {
            case 0, 1: return -Int(EAGAIN)
            case 2: return -Int(EINTR)
            case 3, 4, 5: count = 1 + dice.below(count)
            default:
                harm(fd)
                over.insert(fd)
                return -Int(dice.pick(errors))
            }
        }
        let result = noted(call(count))
        if result <= 0 && result != -Int(EAGAIN) { over.insert(fd) }
        return result
    }
}

extension UnsafeBufferPointer<iovec> {
    fileprivate var byteCount: Int { reduce(0) { $0 + $1.iov_len } }

    /// The pieces of at most the first `count` bytes.
    fileprivate func prefix(ofBytes count: Int) -> [iovec] {
        var (first, left) = ([iovec](), count)
        for piece in self where left > 0 {
            first.append(iovec(iov_base: piece.iov_base, iov_len: Swift.min(piece.iov_len, left)))
            left -= first.last!.iov_len
        }
        return first
    }
}
