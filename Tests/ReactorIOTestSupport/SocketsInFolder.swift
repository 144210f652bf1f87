import Glibc
import PromisesTestSupport

// Unix sockets in the test's own folder.

extension Folder {
    func address(_ name: String) -> SocketAddress { try! SocketAddress(unixPath: self / name) }

    /// The lstat(2) result of a file in it.
    func status(_ name: String) -> stat? {
        var status = stat()
        return lstat(self / name, &status) == 0 ? status : nil
    }

    /// Leaves a socket file as a killed process does.
    func leaveStaleSocket(_ name: String, type: __socket_type = SOCK_STREAM) {
        let fd = socket(AF_UNIX, CInt(type.rawValue | SOCK_CLOEXEC.rawValue), 0)
        _ = address(name).withSocketAddress { bind(fd, $0, $1) }
        listen(fd, 1)
        close(fd)
    }
}
