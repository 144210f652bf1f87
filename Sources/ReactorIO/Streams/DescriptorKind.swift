import CLinux
import Reactor
import ReactorLibc

struct DescriptorKind: OptionSet {
    let rawValue: UInt8

    static var tcp: DescriptorKind { DescriptorKind(rawValue: 1) }
    /// Supports recv(2), send(2) and shutdown(2), not only read(2) and write(2).
    static var socket: DescriptorKind { DescriptorKind(rawValue: 2) }
    static var reads: DescriptorKind { DescriptorKind(rawValue: 4) }
    static var writes: DescriptorKind { DescriptorKind(rawValue: 8) }
    /// A stream socket that is not TCP.
    static var localSocket: DescriptorKind { [.socket, .reads, .writes] }

    /// Makes the descriptor non-blocking and close-on-exec.
    /// - Throws: `SystemError`, with `EINVAL` if it is not a byte stream. The descriptor is then unchanged.
    static func prepare(_ fd: CInt, on loop: EventLoop) throws(SystemError) -> DescriptorKind {
        let kernel = loop.kernel
        let kind = try of(fd, on: loop)
        let flags = try kernel.fileControl(fd, F_GETFL).orThrow(.fileControl, "descriptor \(fd)")
        _ = try kernel.fileControl(fd, F_SETFL, CInt(flags) | O_NONBLOCK).orThrow(.fileControl, "descriptor \(fd)")
        _ = try kernel.fileControl(fd, F_SETFD, FD_CLOEXEC).orThrow(.fileControl, "descriptor \(fd)")
        return kind
    }

    private static func of(_ fd: CInt, on loop: EventLoop) throws(SystemError) -> DescriptorKind {
        func refusal(_ reason: String) -> SystemError {
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
            if try option(SO_TYPE) != CInt(clinux_SOCK_STREAM) { throw refusal("a socket that is not a stream") }
            if try option(SO_ACCEPTCONN) != 0 { throw refusal("a listening socket") }
            return try option(SO_PROTOCOL) == CInt(IPPROTO_TCP) ? [.localSocket, .tcp] : .localSocket
        case S_IFIFO: return try directions(of: fd, kernel)
        case S_IFCHR:
            // Only epoll knows whether it can watch a device.
            do throws(SystemError) { try loop.register(.reading, of: fd, handler: nil) } catch {
                throw error.code == EPERM ? refusal("a device that epoll cannot watch") : error
            }
            loop.forget(fd)
            return try directions(of: fd, kernel)
        case S_IFREG: throw refusal("a regular file")
        case S_IFDIR: throw refusal("a directory")
        case S_IFBLK: throw refusal("a block device")
        default: throw refusal("not a stream of bytes")
        }
    }

    private static func directions(of fd: CInt, _ kernel: CountingSyscalls) throws(SystemError) -> DescriptorKind {
        let flags = CInt(try kernel.fileControl(fd, F_GETFL).orThrow(.fileControl, "descriptor \(fd)"))
        switch flags & CInt(clinux_O_ACCMODE) {
        case O_RDONLY: return .reads
        case O_WRONLY: return .writes
        default: return [.reads, .writes]
        }
    }
}
