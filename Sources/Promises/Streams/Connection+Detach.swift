import Glibc
import Reactor

extension Connection {
    /// Gives the descriptor away: it is the caller's from now on, open and non-blocking, and this connection is closed. To hand
    /// it to another thread, whose `init(adopting:)` makes a connection of it there, or to another process.
    ///
    /// ```swift
    /// let descriptor = try connection.detach()
    /// if !worker.submit({ serve(try! Connection(adopting: descriptor)) }) { Glibc.close(descriptor) }
    /// ```
    ///
    /// Nothing may be under way, since it could not be handed on: a peer that has sent something waits in the kernel, but what was
    /// read and nobody has been given would be lost.
    /// - Throws: `SystemError` of `fcntl`, and the connection is as it was: `EBUSY` if a read waits, or writes, or bytes that
    ///   were read beyond a frame; `EBADF` if it is closed. The error of the connection if it has failed.
    public func detach() throws(SystemError) -> CInt {
        if let failure, lifecycle.isOpen { throw failure }
        guard lifecycle.isOpen else {
            throw SystemError(.fileControl, EBADF, detail: "detach: the connection is closed")
        }
        if !reader.isFree || writer.isQueued || hasInput {
            let reason = writer.isQueued ? "a write waits" : hasInput ? "bytes wait to be read" : "a read waits"
            throw SystemError(.fileControl, EBUSY, detail: "detach: \(reason)")
        }
        // As in `release`, but for the closing. Whose number it is now nobody knows here, so it is never touched again.
        _ = lifecycle.release()
        interest = []
        cold?.idleTimer?.cancel()
        loop.forget(fd)
        return fd
    }
}
