import Reactor
import ReactorLibc

extension Connection {
    var socket: Socket { Socket(fd, loop.kernel) }
    var readCall: SystemCall { kind.contains(.socket) ? .receive : .read }
    package var writeCall: SystemCall { kind.contains(.socket) ? .send : .write }

    /// - Parameter isClosed: true to refuse the call as closed; by default `self.isClosed`.
    func refusal(of call: SystemCall, _ direction: DescriptorKind, isClosed: Bool? = nil) -> SystemError? {
        if let ownEnd { return ownEnd }
        if isClosed ?? self.isClosed { return SystemError(call, EBADF, detail: "the connection is closed") }
        if kind.contains(direction) { return nil }
        return SystemError(call, EBADF, detail: "this end of the pipe only \(direction == .reads ? "writes" : "reads")")
    }

    /// Returns true when the kernel has something for the pending operations: input or the end, room, or an error. The
    /// event loop may not have seen it yet, because it was delayed, takes 256 events at a time, or was interrupted by a
    /// signal. Also true when the kernel lacks the memory to answer.
    func isReady(toRead reads: Bool, toWrite writes: Bool) -> Bool {
        let events = (reads ? POLLIN : 0) | (writes ? POLLOUT : 0)
        return events != 0 && loop.kernel.poll(fd, Int16(events)) != 0
    }

    /// Makes one recv(2), or read(2) if the descriptor is not a socket.
    @inline(__always)
    func callReceive(into buffer: UnsafeMutableRawBufferPointer, atMost limit: Int) -> Int {
        let count = min(limit, buffer.count)
        if kind.contains(.socket) { return loop.receive(fd, buffer.baseAddress!, count) }
        return loop.kernel.read(fd, buffer.baseAddress!, count)
    }

    /// Makes one send(2), or write(2).
    @inline(__always)
    func callSend(_ bytes: UnsafeRawPointer, _ count: Int) -> Int {
        if kind.contains(.socket) { return loop.send(fd, bytes, count) }
        return callWrite(bytes, count)
    }

    @inline(never)
    private func callWrite(_ bytes: UnsafeRawPointer, _ count: Int) -> Int { loop.kernel.write(fd, bytes, count) }

    /// Makes one sendmsg(2), or writev(2). A single piece takes send(2), or write(2).
    func callSend(_ pieces: UnsafeBufferPointer<iovec>) -> Int {
        let first = pieces.baseAddress!
        if pieces.count == 1 { return callSend(first.pointee.iov_base, first.pointee.iov_len) }
        if kind.contains(.socket) { return loop.kernel.sendVector(fd, first, pieces.count) }
        return loop.kernel.writeVector(fd, first, pieces.count)
    }
}
