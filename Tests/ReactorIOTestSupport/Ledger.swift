import Glibc
import PromisesTestSupport

/// A record of a loop's descriptors, kept by its system calls.
final class Ledger {
    /// The open descriptors.
    private(set) var open: Set<CInt> = []
    /// Connections in the order in which they were accepted.
    private(set) var accepted: [CInt] = []
    /// True for each of `accepted` that is still open. The kernel reuses numbers, so a number in `open` may belong to a
    /// later connection.
    private(set) var acceptedAreOpen: [Bool] = []
    /// Calls on numbers that were not the loop's at the time: closed before, perhaps another's by then.
    private(set) var strays: [String] = []
    /// Descriptors whose input has ended or failed, and whose output has failed: a further call is wasted.
    private var over: (input: Set<CInt>, output: Set<CInt>) = ([], [])
    private var wasted: [String] = []

    /// The other ends of connections, which live as long as the test's network.
    let peers = Shared<[Peer]>([])
    private var spins = false

    /// True if several pieces are sent one by one with `send` and `write`, so that a fault injected there affects them
    /// too.
    var sendsPiecesSingly = true

    /// The calls that are really made: replace one to inject a fault.
    var kernel = Syscalls()

    /// The calls for a loop, with the record.
    func syscalls() -> Syscalls {
        var table = Syscalls()
        table.socket = { self.opened(self.kernel.socket($0, $1)) }
        table.epollCreate = { self.opened(self.kernel.epollCreate()) }
        table.eventCreate = { self.opened(self.kernel.eventCreate()) }
        table.pidfdOpen = { self.opened(self.kernel.pidfdOpen($0)) }
        table.timerCreate = { self.opened(self.kernel.timerCreate()) }
        table.accept = {
            let result = self.opened(self.kernel.accept(self.used($0, "accept4"), $1))
            if result >= 0 {
                self.accepted.append(CInt(result))
                self.acceptedAreOpen.append(true)
            }
            return result
        }
        table.close = {
            self.open.remove(self.used($0, "close"))
            self.forgetEnds(of: $0)
            if let index = self.accepted.lastIndex(of: $0) { self.acceptedAreOpen[index] = false }
            return self.kernel.close($0)
        }
        table.bind = { self.kernel.bind(self.used($0, "bind"), $1, $2) }
        table.listen = { self.kernel.listen(self.used($0, "listen"), $1) }
        table.startConnect = { self.kernel.startConnect(self.used($0, "connect"), $1, $2) }
        table.changeMode = { self.kernel.changeMode($0, $1) }
        table.linkStatus = { self.kernel.linkStatus($0, $1) }
        table.lock = { self.kernel.lock(self.used($0, "flock")) }
        table.open = { self.opened(self.kernel.open($0, $1, $2)) }
        table.unlink = { self.kernel.unlink($0) }
        table.epollControl = { self.kernel.epollControl($0, $1, self.used($2, "epoll_ctl"), $3) }
        table.epollWait = { self.kernel.epollWait(self.used($0, "epoll_wait"), $1, $2, $3) }
        table.receive = { self.input($0, $2, self.kernel.receive(self.used($0, "recv"), $1, $2)) }
        table.send = { self.output($0, self.kernel.send(self.used($0, "send"), $1, $2)) }
        table.sendMore = { self.output($0, self.kernel.sendMore(self.used($0, "send"), $1, $2)) }
        table.sendFile = { self.kernel.sendFile(self.used($0, "sendfile"), $1, $2, $3) }
        table.fileControl = { self.kernel.fileControl($0, $1, $2) }
        table.fileStatus = { self.kernel.fileStatus($0, $1) }
        table.pipe = { self.opened(self.kernel.pipe($0), $0) }
        table.socketPair = { self.opened(self.kernel.socketPair($0), $0) }
        table.read = { self.input($0, $2, self.kernel.read(self.used($0, "read"), $1, $2)) }
        table.write = { self.output($0, self.kernel.write(self.used($0, "write"), $1, $2)) }
        table.sendVector = { fd, pieces, count in
            let fd = self.used(fd, "sendmsg")
            if !self.sendsPiecesSingly { return self.output(fd, self.kernel.sendVector(fd, pieces, count)) }
            return self.output(fd, self.singly(pieces, count) { self.kernel.send(fd, $0, $1) })
        }
        table.writeVector = { fd, pieces, count in
            let fd = self.used(fd, "writev")
            if !self.sendsPiecesSingly { return self.output(fd, self.kernel.writeVector(fd, pieces, count)) }
            return self.output(fd, self.singly(pieces, count) { self.kernel.write(fd, $0, $1) })
        }
        table.receiveMessages = { self.kernel.receiveMessages(self.used($0, "recvmmsg"), $1, $2) }
        table.sendMessages = { self.kernel.sendMessages(self.used($0, "sendmmsg"), $1, $2) }
        table.waitingBytes = { self.kernel.waitingBytes(self.used($0, "ioctl"), $1) }
        table.shutdown = { self.kernel.shutdown(self.used($0, "shutdown"), $1) }
        table.getSocketName = { self.kernel.getSocketName(self.used($0, "getsockname"), $1) }
        table.getSocketOption = { self.kernel.getSocketOption(self.used($0, "getsockopt"), $1, $2, $3) }
        table.setSocketOption = { self.kernel.setSocketOption(self.used($0, "setsockopt"), $1, $2, $3, $4) }
        return table
    }

    /// Notes whether the loop has turned more often than `limit`.
    func check(_ loop: EventLoop, turns limit: Int) { spins = loop.metrics.turns > limit }

    /// What a test with this record has left undone when its loop has ended.
    var complaints: [String] {
        (spins ? ["the loop spins"] : []) + (open.isEmpty ? [] : ["descriptors leak: \(open)"])
            + (strays.isEmpty ? [] : ["numbers are used that are not the loop's: \(strays)"])
            + (wasted.isEmpty ? [] : ["calls come after the end: \(wasted)"])
    }

    private func input(_ fd: CInt, _ room: Int, _ result: Int) -> Int {
        if over.input.contains(fd) { wasted.append("input of \(fd), \(result)") }
        if result == 0 && room > 0 || Self.isFinal(result) { over.input.insert(fd) }
        return result
    }

    private func output(_ fd: CInt, _ result: Int) -> Int {
        if over.output.contains(fd) { wasted.append("output of \(fd), \(result)") }
        if Self.isFinal(result) { over.output.insert(fd) }
        return result
    }

    private static func isFinal(_ result: Int) -> Bool {
        result < 0 && ![EAGAIN, EINTR, ENOBUFS, ENOMEM].contains(CInt(-result))
    }

    private func singly(_ pieces: UnsafePointer<iovec>, _ count: Int, _ send: (UnsafeRawPointer, Int) -> Int) -> Int {
        var sent = 0
        for piece in UnsafeBufferPointer(start: pieces, count: count) {
            let result = send(piece.iov_base, piece.iov_len)
            if result < 0 { return sent > 0 ? sent : result }
            sent += result
            if result < piece.iov_len { break }
        }
        return sent
    }

    private func opened(_ result: Int, _ ends: UnsafeMutablePointer<CInt>) -> Int {
        if result >= 0 { open.formUnion([ends[0], ends[1]]) }
        return result
    }

    /// Adds a descriptor that the loop receives from elsewhere; `disown` removes one that it gives away.
    func adopt(_ fd: CInt) { open.insert(fd) }
    func disown(_ fd: CInt) {
        open.remove(fd)
        forgetEnds(of: fd)
    }

    /// The number may belong to another descriptor from here on.
    private func forgetEnds(of fd: CInt) {
        over.input.remove(fd)
        over.output.remove(fd)
    }

    private func opened(_ result: Int) -> Int {
        if result >= 0 { open.insert(CInt(result)) }
        return result
    }

    private func used(_ fd: CInt, _ call: String) -> CInt {
        if !open.contains(fd) { strays.append("\(call)(\(fd))") }
        return fd
    }
}
