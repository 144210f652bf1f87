import Glibc
import Promises
import Reactor

extension Body {
    /// Writes the body into a file while it arrives, as fast as the disk takes it.
    ///
    /// ```swift
    /// request.body.limit = 1 << 30
    /// return request.body.save(to: "/srv/uploads/\(number)").map { count in Response("\(count) bytes\n", status: .created) }
    /// ```
    ///
    /// Another file in the same folder takes the name when all bytes are on the disk: there is never a part of a body under that
    /// name. If the body is not complete, or the promise is cancelled, nothing is left of it. A file of that name is replaced.
    /// - Parameters:
    ///   - path: the file. Do not make it of a name that a client has chosen without looking at that.
    ///   - mode: the permissions of the file, before the process's umask is applied.
    ///   - pool: the threads that write.
    /// - Returns: a promise of the number of bytes. Rejected as `read`, and with the `SystemError` of the file, such as `ENOSPC`.
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

/// A file that takes its name when it is complete, and is removed if it never is.
// @unchecked: used by one job of the pool at a time, of which each begins when the one before has ended; then by `deinit`.
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

    // On the pool, since the disk may take its time.
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
