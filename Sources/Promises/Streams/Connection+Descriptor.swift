import CLinux
import Glibc
import Reactor

// Connections that are made of descriptors, and give them away.

extension Connection {
    /// Two connections that are each other's peers, both on this thread's loop: a socketpair(2).
    /// - Throws: `SystemError` of `socketpair`, such as `EMFILE`.
    @available(*, noasync, message: "an async function has no loop of its own")
    public static func pair() throws(SystemError) -> (Connection, Connection) {
        let loop = EventLoop.ofCurrentThread
        let ends = try loop.kernel.socketPair()
        let make = { (fd: CInt) in
            loop.forget(fd)
            return Connection(fd, [.socket, .reads, .writes], peer: nil, on: loop)
        }
        return (make(ends.0), make(ends.1))
    }

    /// A pipe(2) with both ends on this thread's loop: what is written to `writer` comes out of `reader`.
    ///
    /// Each end goes one way; an operation of the other direction fails with `EBADF`. When the writer is closed, or has
    /// been shut down, the reader comes to its end; a writer without a reader fails with `EPIPE`, and no signal is
    /// raised.
    /// - Throws: `SystemError` of `pipe2`, such as `EMFILE`.
    @available(*, noasync, message: "an async function has no loop of its own")
    public static func pipe() throws(SystemError) -> (reader: Connection, writer: Connection) {
        let loop = EventLoop.ofCurrentThread
        let ends = try loop.kernel.pipe()
        for fd in [ends.0, ends.1] { loop.forget(fd) }
        return (
            Connection(ends.0, .reads, peer: nil, on: loop), Connection(ends.1, .writes, peer: nil, on: loop)
        )
    }

    /// Makes a connection of an open descriptor, which belongs to the connection from then on: a connected stream
    /// socket, an end of a pipe or of a FIFO, or a device that can be waited for, such as a terminal.
    ///
    /// It is set to close-on-exec and to be non-blocking. The latter is a property of what the descriptor stands for,
    /// so it shows through every copy of it, in other processes too: a shell's terminal is better not adopted.
    /// - Throws: `SystemError`, and then the descriptor is still yours, as it was. `EINVAL` of `fstat` for what is no stream,
    ///   with the reason: a regular file, a directory, a datagram socket, a listening one, a device that cannot be waited
    ///   for; `EBADF` for a number that is no descriptor.
    @available(*, noasync, message: "an async function has no loop of its own")
    public convenience init(adopting fd: CInt) throws(SystemError) {
        let loop = EventLoop.ofCurrentThread
        let kernel = loop.kernel
        let traits = try Self.traits(of: fd, loop)
        let flags = try kernel.fileControl(fd, F_GETFL).orThrow(.fileControl, "descriptor \(fd)")
        _ = try kernel.fileControl(fd, F_SETFL, CInt(flags) | O_NONBLOCK).orThrow(.fileControl, "descriptor \(fd)")
        _ = try kernel.fileControl(fd, F_SETFD, FD_CLOEXEC).orThrow(.fileControl, "descriptor \(fd)")
        loop.forget(fd)
        let peer = traits.contains(.tcp) ? Socket(fd, kernel).peerAddress : nil
        self.init(fd, traits, peer: peer, on: loop)
    }

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
        sendGathered()
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

    // MARK: Kinds of descriptors

    /// What kind of descriptor it is, for life.
    struct Traits: OptionSet {
        let rawValue: UInt8

        static var tcp: Traits { Traits(rawValue: 1) }
        /// It takes recv(2), send(2) and shutdown(2), and not read(2) and write(2) only.
        static var socket: Traits { Traits(rawValue: 2) }
        static var reads: Traits { Traits(rawValue: 4) }
        static var writes: Traits { Traits(rawValue: 8) }
    }

    var readCall: SystemCall { traits.contains(.socket) ? .receive : .read }
    var writeCall: SystemCall { traits.contains(.socket) ? .send : .write }

    private static func traits(of fd: CInt, _ loop: EventLoop) throws(SystemError) -> Traits {
        func refuse(_ reason: String) -> SystemError {
            SystemError(.fileStatus, EINVAL, detail: "descriptor \(fd) is \(reason)")
        }
        let kernel = loop.kernel
        var status = stat()
        _ = try kernel.fileStatus(fd, &status).orThrow(.fileStatus, "descriptor \(fd)")
        switch status.st_mode & S_IFMT {
        case S_IFSOCK:
            func option(_ name: CInt) throws(SystemError) -> CInt {
                var value: CInt = 0
                _ = try kernel.getSocketOption(fd, SOL_SOCKET, name, &value).orThrow(.getSocketOption)
                return value
            }
            if try option(SO_TYPE) != CInt(SOCK_STREAM.rawValue) { throw refuse("a socket that is no stream") }
            if try option(SO_ACCEPTCONN) != 0 { throw refuse("a listening socket") }
            let isTCP = try option(SO_PROTOCOL) == CInt(IPPROTO_TCP)
            return isTCP ? [.tcp, .socket, .reads, .writes] : [.socket, .reads, .writes]
        case S_IFIFO: return try direction(of: fd, kernel)
        case S_IFCHR:
            // Whether a device can be waited for only epoll knows.
            do throws(SystemError) { try loop.register(.reading, of: fd, handler: nil) } catch {
                throw error.code == EPERM ? refuse("a device that cannot be waited for") : error
            }
            loop.forget(fd)
            return try direction(of: fd, kernel)
        case S_IFREG: throw refuse("a regular file")
        case S_IFDIR: throw refuse("a directory")
        case S_IFBLK: throw refuse("a block device")
        default: throw refuse("no stream of bytes")
        }
    }

    private static func direction(of fd: CInt, _ kernel: CountingSyscalls) throws(SystemError) -> Traits {
        let flags = CInt(try kernel.fileControl(fd, F_GETFL).orThrow(.fileControl, "descriptor \(fd)"))
        switch flags & O_ACCMODE {
        case O_RDONLY: return .reads
        case O_WRONLY: return .writes
        default: return [.reads, .writes]
        }
    }
}
