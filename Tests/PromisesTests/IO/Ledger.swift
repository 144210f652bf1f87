import Glibc
import Reactor

/// An account of a loop's descriptors, kept where its system calls are made.
final class Ledger {
    /// Those that are open.
    private(set) var open: Set<CInt> = []
    /// Connections in the order in which they were accepted.
    private(set) var accepted: [CInt] = []
    /// Calls on numbers that were not the loop's at the time: closed before, perhaps another's by then.
    private(set) var strays: [String] = []

    /// The system calls of Linux, with the account.
    func syscalls() -> Syscalls {
        let real = Syscalls()
        var table = real
        table.socket = { self.opened(real.socket($0, $1)) }
        table.epollCreate = { self.opened(real.epollCreate()) }
        table.eventCreate = { self.opened(real.eventCreate()) }
        table.timerCreate = { self.opened(real.timerCreate()) }
        table.accept = { fd, address in
            self.use(fd, "accept4")
            let result = self.opened(real.accept(fd, address))
            if result >= 0 { self.accepted.append(CInt(result)) }
            return result
        }
        table.close = {
            self.use($0, "close")
            self.open.remove($0)
            return real.close($0)
        }
        table.epollControl = {
            self.use($2, "epoll_ctl")
            return real.epollControl($0, $1, $2, $3)
        }
        table.receive = {
            self.use($0, "recv")
            return real.receive($0, $1, $2)
        }
        table.send = {
            self.use($0, "send")
            return real.send($0, $1, $2)
        }
        table.shutdown = {
            self.use($0, "shutdown")
            return real.shutdown($0, $1)
        }
        table.setSocketOption = {
            self.use($0, "setsockopt")
            return real.setSocketOption($0, $1, $2, $3, $4)
        }
        return table
    }

    /// Enters a descriptor that the test has opened for the loop.
    func enter(_ fd: CInt) { open.insert(fd) }

    private func opened(_ result: Int) -> Int {
        if result >= 0 { open.insert(CInt(result)) }
        return result
    }

    private func use(_ fd: CInt, _ call: String) {
        if !open.contains(fd) { strays.append("\(call)(\(fd))") }
    }
}
