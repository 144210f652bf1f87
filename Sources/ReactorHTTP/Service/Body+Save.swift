import Glibc
import Promises
import Reactor

extension Body {
    /// Writes the body to a file as it arrives, as fast as the disk takes it.
    ///
    /// ```swift
    /// request.body.limit = 1 << 30
    /// return request.body.save(to: "/srv/uploads/\(number)").map { count in Response("\(count) bytes\n", status: .created) }
    /// ```
    ///
    /// The bytes go to a temporary file in the same folder, which is renamed when all of them are on the disk: a
    /// partial body never appears under the name. If the body is incomplete, or the promise is cancelled, the temporary
    /// file is removed. An existing file of that name is replaced.
    /// - Parameters:
    ///   - path: the file. Do not derive it from a name that a client has chosen without validating that.
    ///   - mode: the permissions of the file, before the process's umask applies.
    ///   - pool: the threads that write.
    /// - Returns: a promise of the number of bytes. Rejected as `read`, and with the `SystemError` of the file, such as
    ///   `ENOSPC`.
    public func save(to path: String, mode: UInt32 = 0o666, on pool: ThreadPool = .shared) -> Promise<Int> {
        Promise(on: pool) { try PartialFile(path, mode, pool) }.then { file -> Promise<Int> in
            var count = 0
            return self.forEach { part in
                count += part.count
                return Promise(on: pool) { try file.append(part) }
            }.then { Promise(on: pool) { try file.complete() } }.map { count }
        }
    }
}

/// A file that gets its name when it is complete, and is removed if it never is.
// @unchecked: used by one job of the pool at a time, each of which begins after the previous one has ended; then by
// `deinit`.
private final class PartialFile: @unchecked Sendable {
    private let path: String
    private let temporary: String
    private let pool: ThreadPool
    private let fd: CInt
    private var isComplete = false

    init(_ path: String, _ mode: UInt32, _ pool: ThreadPool) throws {
        if path.utf8.contains(0) { throw SystemError(.open, EINVAL, detail: "a zero byte in the path \(path)") }
        let folder = path.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(path[...$0]) } ?? ""
        (self.path, self.pool) = (path, pool)
        temporary = "\(folder).\(String(UInt64.random(in: 0 ... .max), radix: 36)).tmp"
        let answer = FileSyscalls.real.open(temporary, O_WRONLY | O_CREAT | O_EXCL, mode)
        fd = CInt(answer)
        if answer < 0 { throw SystemError(.open, -fd, detail: temporary) }
    }

    // On the pool, since the disk may be slow.
    deinit {
        if fd < 0 { return }
        let close = { @Sendable [fd, temporary, isComplete] in
            if !isComplete { unlink(temporary) }
            _ = Glibc.close(fd)
        }
        do { try pool.dispatch(close) } catch { close() }
    }

    func append(_ bytes: [UInt8]) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { write(fd, $0.baseAddress, $0.count) }
            if count < 0 && errno == EINTR { continue }
            if count <= 0 { throw SystemError(.write, count < 0 ? errno : EIO, detail: path) }
            rest = rest.dropFirst(count)
        }
    }

    func complete() throws {
        guard fsync(fd) == 0 else { throw SystemError(.sync, errno, detail: path) }
        guard rename(temporary, path) == 0 else { throw SystemError(.rename, errno, detail: path) }
        isComplete = true
    }
}
