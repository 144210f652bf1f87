import Promises
import Reactor
import ReactorIO
import ReactorLibc

extension Body {
    /// Writes the body to a file as it arrives, at the disk's pace.
    ///
    /// ```swift
    /// request.body.limit = 1 << 30
    /// return request.body.save(to: "/srv/uploads/\(number)").map { count in Response("\(count) bytes\n", status: .created) }
    /// ```
    ///
    /// The bytes go to a temporary file in the same folder. The file is renamed when all are on the disk, so a partial
    /// body never has the name. If the body is incomplete or the promise is cancelled, the file is removed. An existing
    /// file is replaced.
    /// - Parameters:
    ///   - path: the file. Validate a client's name before using it here.
    ///   - mode: the file's permissions, before the process's umask.
    ///   - pool: the writing threads.
    /// - Returns: a promise of the number of bytes, with the same errors as `read`, or the file's `SystemError`, such
    ///   as `ENOSPC`.
    public func save(to path: String, mode: UInt32 = 0o666, on pool: ThreadPool = .shared) -> Promise<Int> {
        save(to: path, mode: mode, on: pool, calls: .real)
    }

    package func save(to path: String, mode: UInt32, on pool: ThreadPool, calls: FileSyscalls) -> Promise<Int> {
        Promise(on: pool) { try PartialFile(path, mode, pool, calls) }.then { file -> Promise<Int> in
            var count = 0
            return self.forEach { part in
                count += part.count
                return Promise(on: pool) { try file.append(part) }
            }.then { Promise(on: pool) { try file.complete() } }.map { count }
        }
    }
}

/// A temporary file that gets its name when complete; otherwise it is removed.
// @unchecked: used by one pool job at a time, each after the previous one's end, then by `deinit`.
private final class PartialFile: @unchecked Sendable {
    private let path: String
    private let temporary: String
    private let pool: ThreadPool
    private let calls: FileSyscalls
    private let fd: CInt
    private var isComplete = false

    init(_ path: String, _ mode: UInt32, _ pool: ThreadPool, _ calls: FileSyscalls) throws {
        if path.utf8.contains(0) { throw SystemError(.open, EINVAL, detail: "a zero byte in the path \(path)") }
        let folder = path.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(path[...$0]) } ?? ""
        (self.path, self.pool, self.calls) = (path, pool, calls)
        temporary = "\(folder).\(String(UInt64.random(in: 0 ... .max), radix: 36)).tmp"
        var answer: Int
        repeat { answer = calls.open(temporary, O_WRONLY | O_CREAT | O_EXCL, mode) } while answer == -Int(EINTR)
        fd = CInt(answer)
        if answer < 0 { throw SystemError(.open, -fd, detail: temporary) }
    }

    // Closes on the pool, because the disk may be slow.
    deinit {
        if fd < 0 { return }
        let close = { @Sendable [fd, temporary, isComplete, calls] in
            if !isComplete { _ = calls.unlink(temporary) }
            _ = calls.close(fd)
        }
        do { try pool.dispatch(close) } catch { close() }
    }

    func append(_ bytes: [UInt8]) throws {
        try bytes.withUnsafeBytes { bytes in
            var written = 0
            while written < bytes.count {
                let count = try retrying(.write) {
                    calls.write(fd, bytes.baseAddress! + written, bytes.count - written)
                }
                // Never happens for a file, but would make this loop run forever.
                if count == 0 { throw SystemError(.write, EIO, detail: path) }
                written += count
            }
        }
    }

    func complete() throws {
        _ = try retrying(.sync) { calls.sync(fd) }
        _ = try retrying(.rename) { calls.rename(temporary, path) }
        isComplete = true
    }

    private func retrying(_ call: SystemCall, _ body: () -> Int) throws(SystemError) -> Int {
        while true {
            let result = body()
            if result != -Int(EINTR) { return try result.orThrow(call, path) }
        }
    }
}
