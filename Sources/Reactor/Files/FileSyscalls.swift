import CLinux
import ReactorLibc

/// The system calls for files. Unlike `Syscalls`, they are not counted, and are `Sendable` for use on pool threads.
package struct FileSyscalls: Sendable {
    /// fchown(2), for the group only.
    package var changeGroup: @Sendable (CInt, gid_t) -> Int = { fileResult(fchown($0, .max, $1)) }
    package var changeMode: @Sendable (CInt, mode_t) -> Int = { fileResult(fchmod($0, $1)) }
    package var close: @Sendable (CInt) -> Int = { fileResult(ReactorLibc.close($0)) }
    package var open: @Sendable (_ path: String, _ flags: CInt, _ mode: mode_t) -> Int = {
        fileResult(clinux_above_standard(ReactorLibc.open($0, $1 | O_CLOEXEC, $2)))
    }
    /// Opens from the kernel's caches; fails instead of waiting for the disk. See `clinux_open_cached`.
    package var openCached: @Sendable (_ path: String, _ flags: CInt) -> Int = {
        fileResult(clinux_above_standard(clinux_open_cached($0, $1 | O_CLOEXEC)))
    }
    package var readAt: @Sendable (CInt, UnsafeMutableRawPointer, Int, _ offset: Int) -> Int = {
        fileResult(pread($0, $1, $2, off_t($3)))
    }
    /// Reads from the page cache; fails or returns fewer bytes instead of waiting for the disk.
    package var readCached: @Sendable (CInt, UnsafeMutableRawPointer, Int, _ offset: Int) -> Int = {
        fileResult(clinux_read_cached($0, $1, $2, Int64($3)))
    }
    package var read: @Sendable (CInt, UnsafeMutableRawPointer, Int) -> Int = {
        fileResult(ReactorLibc.read($0, $1, $2))
    }
    package var rename: @Sendable (_ old: String, _ new: String) -> Int = { fileResult(ReactorLibc.rename($0, $1)) }
    package var status: @Sendable (CInt, inout stat) -> Int = { fileResult(fstat($0, &$1)) }
    package var statusOfPath: @Sendable (String, inout stat) -> Int = { fileResult(stat($0, &$1)) }
    package var sync: @Sendable (CInt) -> Int = { fileResult(fsync($0)) }
    package var unlink: @Sendable (String) -> Int = { fileResult(ReactorLibc.unlink($0)) }
    package var write: @Sendable (CInt, UnsafeRawPointer, Int) -> Int = { fileResult(ReactorLibc.write($0, $1, $2)) }

    package init() {}

    package static let real = FileSyscalls()
}

private func fileResult(_ value: CInt) -> Int { value < 0 ? -Int(errno) : Int(value) }
private func fileResult(_ value: Int) -> Int { value < 0 ? -Int(errno) : value }
