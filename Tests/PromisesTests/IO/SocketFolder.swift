import Glibc
import Reactor

/// A folder for the sockets of one test, which goes with this object.
final class SocketFolder {
    let path: String

    init() {
        var template = Array("/tmp/reactor-XXXXXX".utf8CString)
        path = template.withUnsafeMutableBufferPointer { String(cString: mkdtemp($0.baseAddress!)) }
    }

    deinit {
        for name in names { unlink(self[name]) }
        rmdir(path)
    }

    /// What is in it.
    var names: [String] {
        guard let folder = opendir(path) else { return [] }
        defer { closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != "." && name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    subscript(name: String) -> String { "\(path)/\(name)" }

    func address(_ name: String) -> SocketAddress { try! SocketAddress(unixPath: self[name]) }

    /// What lstat(2) says of a file in it.
    func status(_ name: String) -> stat? {
        var status = stat()
        return lstat(self[name], &status) == 0 ? status : nil
    }

    /// What a process that was killed leaves behind.
    func leaveStaleSocket(_ name: String, type: __socket_type = SOCK_STREAM) {
        let fd = socket(AF_UNIX, CInt(type.rawValue | SOCK_CLOEXEC.rawValue), 0)
        _ = address(name).withSocketAddress { bind(fd, $0, $1) }
        listen(fd, 1)
        close(fd)
    }
}
