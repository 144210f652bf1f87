import Glibc
import Promises
import Reactor
import TestSupport
import Testing

extension Folder {
    func contents(_ name: String) -> [UInt8]? {
        let fd = open(self / name, O_RDONLY)
        guard fd >= 0 else { return nil }
        defer { close(fd) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 20)
        while true {
            let count = read(fd, &buffer, buffer.count)
            if count <= 0 { return bytes }
            bytes += buffer[..<count]
        }
    }

    func put(_ bytes: [UInt8], _ name: String) {
        let fd = open(self / name, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        precondition(fd >= 0 && write(fd, bytes, bytes.count) == bytes.count)
        close(fd)
    }

    func mode(_ name: String) -> mode_t {
        var status = stat()
        return stat(self / name, &status) == 0 ? status.st_mode & 0o7777 : 0
    }
}

/// Real calls, with a record of the open files.
final class FileLedger: Sendable {
    let open = Shared<Set<CInt>>([])

    var calls: FileSyscalls {
        var calls = FileSyscalls()
        let real = calls
        calls.open = { path, flags, mode in
            let result = real.open(path, flags, mode)
            if result >= 0 { self.open.change { _ = $0.insert(CInt(result)) } }
            return result
        }
        calls.close = { fd in
            self.open.change { _ = $0.remove(fd) }
            return real.close(fd)
        }
        return calls
    }
}
