import CLinux
import ReactorLibc

/// The library's system calls as a table of closures, in which tests inject errors and short counts.
///
/// An entry returns the kernel's result: zero or more, or `-errno`. Real entries are one line each, so injected faults
/// take the same path.
@usableFromInline
package struct Syscalls {
    package var accept: (_ fd: CInt, _ address: UnsafeMutablePointer<sockaddr_storage>) -> Int = { fd, address in
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            made(accept4(fd, $0, &length, CInt(clinux_SOCK_NONBLOCK | clinux_SOCK_CLOEXEC)))
        }
    }
    package var bind: (CInt, UnsafePointer<sockaddr>, socklen_t) -> Int = { result(ReactorLibc.bind($0, $1, $2)) }
    package var changeMode: (_ path: String, _ mode: mode_t) -> Int = { result(chmod($0, $1)) }
    package var close: (CInt) -> Int = { result(ReactorLibc.close($0)) }
    package var startConnect: (CInt, UnsafePointer<sockaddr>, socklen_t) -> Int = { result(systemConnect($0, $1, $2)) }
    package var epollControl: (_ epoll: CInt, _ operation: CInt, _ fd: CInt, _ event: epoll_event) -> Int = {
        var event = $3
        return result(epoll_ctl($0, $1, $2, &event))
    }
    package var epollCreate: () -> Int = { made(epoll_create1(CInt(EPOLL_CLOEXEC))) }
    package var epollWait: (CInt, UnsafeMutablePointer<epoll_event>, CInt, _ timeout: CInt) -> Int = {
        result(epoll_wait($0, $1, $2, $3))
    }
    package var eventCreate: () -> Int = { made(eventfd(0, CInt(EFD_CLOEXEC | EFD_NONBLOCK))) }
    package var fileControl: (CInt, _ command: CInt, _ argument: CInt) -> Int = { result(fcntl($0, $1, $2)) }
    package var fileStatus: (CInt, UnsafeMutablePointer<stat>) -> Int = { result(fstat($0, $1)) }
    package var getPeerName: (CInt, UnsafeMutablePointer<sockaddr_storage>) -> Int = { fd, address in
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return address.withMemoryRebound(to: sockaddr.self, capacity: 1) { result(getpeername(fd, $0, &length)) }
    }
    package var getSocketName: (CInt, UnsafeMutablePointer<sockaddr_storage>) -> Int = { fd, address in
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return address.withMemoryRebound(to: sockaddr.self, capacity: 1) { result(getsockname(fd, $0, &length)) }
    }
    package var getSocketOption: (CInt, _ level: CInt, _ name: CInt, _ value: UnsafeMutablePointer<CInt>) -> Int = {
        var length = socklen_t(MemoryLayout<CInt>.size)
        return result(getsockopt($0, $1, $2, $3, &length))
    }
    /// The milliseconds since a TCP connection last received or sent data: getsockopt(2) with TCP_INFO.
    package var getQuietTime: (CInt) -> Int = {
        var time: CUnsignedInt = 0
        let answer = result(clinux_tcp_quiet_time($0, &time))
        return answer < 0 ? answer : Int(time)
    }
    /// Sends a signal to a pidfd, or to a process number if the pidfd is negative.
    package var kill: (_ pidfd: CInt, _ process: pid_t, _ signal: CInt) -> Int = {
        result($0 >= 0 ? clinux_pidfd_send_signal($0, $2) : ReactorLibc.kill($1, $2))
    }
    package var linkStatus: (_ path: String, UnsafeMutablePointer<stat>) -> Int = { result(lstat($0, $1)) }
    /// A random number to vary pauses. Not secret, so not for keys.
    package var random: () -> UInt64 = { .random(in: 0 ... .max) }
    package var secondsSinceEpoch: () -> Int = { time(nil) }
    /// Looks up a name in a simulated network. The result is addresses or an error code from getaddrinfo(3), after a
    /// delay. `nil` means getaddrinfo(3).
    package var lookUp: ((_ host: String) -> (addresses: [sockaddr_storage], code: CInt, delay: Duration))?
    package var listen: (CInt, _ backlog: CInt) -> Int = { result(ReactorLibc.listen($0, $1)) }
    /// flock(2), exclusive and non-blocking: EAGAIN if another process has the lock.
    package var lock: (CInt) -> Int = { result(clinux_lock($0)) }
    package var open: (_ path: String, _ flags: CInt, _ mode: mode_t) -> Int = {
        made(ReactorLibc.open($0, $1 | O_CLOEXEC, $2))
    }
    package var pidfdOpen: (pid_t) -> Int = { made(clinux_pidfd_open($0)) }
    package var pipe: (_ ends: UnsafeMutablePointer<CInt>) -> Int = {
        made(clinux_pipe($0, CInt(O_NONBLOCK) | CInt(O_CLOEXEC)), $0)
    }
    /// Does not wait.
    package var poll: (CInt, _ events: Int16) -> Int = {
        var entry = pollfd(fd: $0, events: $1, revents: 0)
        return result(ReactorLibc.poll(&entry, 1, 0))
    }
    package var read: (CInt, UnsafeMutableRawPointer, Int) -> Int = { result(ReactorLibc.read($0, $1, $2)) }
    @usableFromInline package var receive: (CInt, UnsafeMutableRawPointer, Int) -> Int = { result(recv($0, $1, $2, 0)) }
    package var receiveMessages: (CInt, UnsafeMutablePointer<clinux_mmsghdr>, _ count: Int) -> Int = {
        result(clinux_recvmmsg($0, $1, CUnsignedInt($2), 0))
    }
    // MSG_NOSIGNAL on every send: otherwise, a write to a reset socket would end the process with SIGPIPE, and a
    // library must not change the process's signal dispositions.
    @usableFromInline package var send: (CInt, UnsafeRawPointer, Int) -> Int = {
        result(ReactorLibc.send($0, $1, $2, CInt(MSG_NOSIGNAL)))
    }
    /// `send` when more bytes follow at once: the kernel may wait for them to fill a segment.
    package var sendMore: (CInt, UnsafeRawPointer, Int) -> Int = {
        result(ReactorLibc.send($0, $1, $2, CInt(MSG_NOSIGNAL | MSG_MORE)))
    }
    /// Sends part of a file; see `clinux_sendfile_without_signal`.
    package var sendFile: (CInt, _ file: CInt, _ offset: Int, _ count: Int) -> Int = {
        result(clinux_sendfile_without_signal($0, $1, off_t($2), $3))
    }
    package var sendVector: (CInt, _ pieces: UnsafePointer<iovec>, _ count: Int) -> Int = { fd, pieces, count in
        var message = msghdr()
        message.msg_iov = UnsafeMutablePointer(mutating: pieces)
        message.msg_iovlen = .init(count)
        return result(sendmsg(fd, &message, CInt(MSG_NOSIGNAL)))
    }
    package var sendMessages: (CInt, UnsafeMutablePointer<clinux_mmsghdr>, _ count: Int) -> Int = {
        result(clinux_sendmmsg($0, $1, CUnsignedInt($2), CInt(MSG_NOSIGNAL)))
    }
    package var setSocketOption: (CInt, _ level: CInt, _ name: CInt, UnsafeRawPointer, socklen_t) -> Int = {
        result(setsockopt($0, $1, $2, $3, $4))
    }
    package var shutdown: (CInt, _ how: CInt) -> Int = { result(ReactorLibc.shutdown($0, $1)) }
    package var socket: (_ family: CInt, _ type: CInt) -> Int = { made(ReactorLibc.socket($0, $1, 0)) }
    package var socketPair: (_ ends: UnsafeMutablePointer<CInt>) -> Int = {
        let type = CInt(clinux_SOCK_STREAM | clinux_SOCK_NONBLOCK | clinux_SOCK_CLOEXEC)
        return made(socketpair(AF_UNIX, type, 0, $0), $0)
    }
    package var spawn: (SpawnArguments) -> Int = { $0.spawn() }
    package var timerCreate: () -> Int = {
        made(timerfd_create(CLOCK_MONOTONIC, CInt(TFD_CLOEXEC) | CInt(TFD_NONBLOCK)))
    }
    package var timerSet: (CInt, _ deadline: timespec) -> Int = {
        var value = itimerspec(it_interval: timespec(), it_value: $1)
        return result(timerfd_settime($0, CInt(TFD_TIMER_ABSTIME), &value, nil))
    }
    /// Bytes in the kernel that wait to be read or acknowledged: ioctl(2).
    package var waitingBytes: (CInt, WaitingBytes) -> Int = { fd, direction in
        var count: CInt = 0
        let answer = result(clinux_waiting_bytes(fd, direction == .incoming, &count))
        return answer < 0 ? answer : Int(count)
    }
    /// Returns 1 if the child has ended, or 0. `keepsZombie` does not reap the child.
    package var wait:
        (_ isPidfd: Bool, _ id: CInt, _ keepsZombie: Bool, _ code: inout CInt, _ status: inout CInt) -> Int = {
            Int(clinux_wait($0 ? 1 : 0, $1, $2 ? 1 : 0, &$3, &$4))
        }
    // MSG_NOSIGNAL works only for sockets, so this call blocks SIGPIPE for its thread.
    package var write: (CInt, UnsafeRawPointer, Int) -> Int = { fd, bytes, count in
        var piece = iovec(iov_base: UnsafeMutableRawPointer(mutating: bytes), iov_len: count)
        return result(clinux_writev_without_signal(fd, &piece, 1))
    }
    package var writeVector: (CInt, _ pieces: UnsafePointer<iovec>, _ count: Int) -> Int = {
        result(clinux_writev_without_signal($0, $1, CInt($2)))
    }
    package var unlink: (_ path: String) -> Int = { result(ReactorLibc.unlink($0)) }

    package init() {}
}

extension Syscalls {
    package var isSimulated: Bool { lookUp != nil }

    package static var simulationHasOneThread: String {
        "a simulated network has one thread: serve without a group there"
    }
}

package enum WaitingBytes {
    /// Bytes to read.
    case incoming
    /// Bytes, sent or still to be sent, that the peer has not acknowledged.
    case outgoing
}

private let systemConnect = ReactorLibc.connect

private func result(_ value: CInt) -> Int { value < 0 ? -Int(errno) : Int(value) }
private func result(_ value: Int) -> Int { value < 0 ? -Int(errno) : value }

/// Returns a descriptor made by the kernel, or `-errno`. Never a standard stream, even if one is closed.
private func made(_ fd: CInt) -> Int { result(clinux_above_standard(fd)) }

private func made(_ answer: CInt, _ ends: UnsafeMutablePointer<CInt>) -> Int {
    if answer < 0 { return result(answer) }
    for index in 0...1 {
        let moved = made(ends[index])
        if moved < 0 {
            // The first end may have a new number; close this one.
            close(ends[1 - index])
            return moved
        }
        ends[index] = CInt(moved)
    }
    return 0
}
