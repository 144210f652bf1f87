import Glibc

/// The system calls for files, as `Syscalls` has those of a loop. They are made on the threads of pools, so they are
/// `Sendable`, and not counted.
package struct FileCalls: Sendable {
    /// What fstat(2) has told.
    package struct Status: Sendable {
        package var mode: mode_t
        package var size: Int

        package init(mode: mode_t, size: Int) {
            self.mode = mode
            self.size = size
        }
    }

    package var changeMode: @Sendable (CInt, mode_t) -> Int = { fileResult(fchmod($0, $1)) }
    package var close: @Sendable (CInt) -> Int = { fileResult(Glibc.close($0)) }
    package var open: @Sendable (_ path: String, _ flags: CInt, _ mode: mode_t) -> Int = {
        fileResult(Glibc.open($0, $1 | O_CLOEXEC, $2))
    }
    package var read: @Sendable (CInt, UnsafeMutableRawPointer, Int) -> Int = { fileResult(Glibc.read($0, $1, $2)) }
    package var rename: @Sendable (_ old: String, _ new: String) -> Int = { fileResult(Glibc.rename($0, $1)) }
    package var status: @Sendable (CInt, inout Status) -> Int = {
        var status = stat()
        let result = fileResult(fstat($0, &status))
        $1 = Status(mode: status.st_mode, size: Int(status.st_size))
        return result
    }
    package var statusOfPath: @Sendable (String, inout Status) -> Int = {
        var status = stat()
        let result = fileResult(stat($0, &status))
        $1 = Status(mode: status.st_mode, size: Int(status.st_size))
        return result
    }
    package var sync: @Sendable (CInt) -> Int = { fileResult(fsync($0)) }
    package var unlink: @Sendable (String) -> Int = { fileResult(Glibc.unlink($0)) }
    package var write: @Sendable (CInt, UnsafeRawPointer, Int) -> Int = { fileResult(Glibc.write($0, $1, $2)) }

    package init() {}
}

private func fileResult(_ value: CInt) -> Int { value < 0 ? -Int(errno) : Int(value) }
private func fileResult(_ value: Int) -> Int { value < 0 ? -Int(errno) : value }
