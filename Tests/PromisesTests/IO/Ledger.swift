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

    /// What really makes the calls: the place for a test to inject a fault.
    var kernel = Syscalls()

    /// The calls for a loop, with the account.
    func syscalls() -> Syscalls {
        var table = Syscalls()
        table.socket = { self.opened(self.kernel.socket($0, $1)) }
        table.epollCreate = { self.opened(self.kernel.epollCreate()) }
        table.eventCreate = { self.opened(self.kernel.eventCreate()) }
        table.timerCreate = { self.opened(self.kernel.timerCreate()) }
        table.accept = {
            let result = self.opened(self.kernel.accept(self.used($0, "accept4"), $1))
            if result >= 0 { self.accepted.append(CInt(result)) }
            return result
        }
        table.close = {
            self.open.remove(self.used($0, "close"))
            return self.kernel.close($0)
        }
        table.bind = { self.kernel.bind(self.used($0, "bind"), $1, $2) }
        table.listen = { self.kernel.listen(self.used($0, "listen"), $1) }
        table.startConnect = { self.kernel.startConnect(self.used($0, "connect"), $1, $2) }
        table.epollControl = { self.kernel.epollControl($0, $1, self.used($2, "epoll_ctl"), $3) }
        table.epollWait = { self.kernel.epollWait(self.used($0, "epoll_wait"), $1, $2, $3) }
        table.receive = { self.kernel.receive(self.used($0, "recv"), $1, $2) }
        table.send = { self.kernel.send(self.used($0, "send"), $1, $2) }
        table.shutdown = { self.kernel.shutdown(self.used($0, "shutdown"), $1) }
        table.getSocketName = { self.kernel.getSocketName(self.used($0, "getsockname"), $1) }
        table.getSocketOption = { self.kernel.getSocketOption(self.used($0, "getsockopt"), $1, $2, $3) }
        table.setSocketOption = { self.kernel.setSocketOption(self.used($0, "setsockopt"), $1, $2, $3, $4) }
        return table
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
