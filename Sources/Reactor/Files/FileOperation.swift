import ReactorLibc

/// Blocking file access, as a pool's job.
package struct FileOperation: Sendable {
    private let path: String
    private let calls: FileSyscalls
    /// Throws if the result is no longer wanted. Called between chunks.
    private let checkCancelled: @Sendable () throws -> Void

    /// The bytes between two calls of `checkCancelled`, which take about 0.1 ms.
    private static var chunk: Int { 256 << 10 }

    package init(_ path: String, _ calls: FileSyscalls, checkCancelled: @escaping @Sendable () throws -> Void) {
        self.path = path
        self.calls = calls
        self.checkCancelled = checkCancelled
    }

    // MARK: Reading

    package func read(limit: Int) throws -> [UInt8] {
        if limit < 0 { throw SystemError(.read, EINVAL, detail: "\(path): limit \(limit)") }
        let fd = try open(O_RDONLY, 0)
        defer { _ = calls.close(fd) }
        let size = try regularFile(fd).st_size
        if size > limit { throw tooLarge(limit) }
        // One more byte, to detect the end. (Files in /proc report a size of zero.)
        let expected = size == .max ? size : size + 1
        try checkMemory(for: expected)
        var (bytes, hasEnded) = try readPart(fd, atMost: max(expected, 4096))
        while !hasEnded {
            if bytes.count > limit { throw tooLarge(limit) }
            let part = try readPart(fd, atMost: min(max(bytes.count, 4096), Self.chunk))
            bytes += part.bytes
            hasEnded = part.hasEnded
        }
        if bytes.count > limit { throw tooLarge(limit) }
        return bytes
    }

    /// Reads `most` bytes, or up to the end. Does not loop over bytes, which takes 170 ns each in debug builds.
    private func readPart(_ fd: CInt, atMost most: Int) throws -> (bytes: [UInt8], hasEnded: Bool) {
        var hasEnded = false
        let bytes = try [UInt8](unsafeUninitializedCapacity: most) { buffer, filled in
            while filled < most && !hasEnded {
                try checkCancelled()
                let (rest, room) = (buffer.baseAddress! + filled, min(most - filled, Self.chunk))
                let count = try retrying(.read) { calls.read(fd, rest, room) }
                filled += count
                hasEnded = count == 0
            }
        }
        return (bytes, hasEnded)
    }

    /// Checks that memory is available, because a failed array allocation ends the process, and a sparse file may be
    /// larger than any memory. Small sizes are not checked. Half a tebibyte or more is refused at once: no such array
    /// is useful, and the sanitizers' allocators would end the process.
    private func checkMemory(for count: Int) throws(SystemError) {
        if count <= 1 << 24 { return }
        // Including the array's header.
        guard count < 1 << 39, let probe = malloc(count + 64) else {
            throw SystemError(.read, ENOMEM, detail: "\(path): \(count) bytes")
        }
        free(probe)
    }

    private func tooLarge(_ limit: Int) -> SystemError {
        SystemError(.read, EFBIG, detail: "\(path): more than \(limit) bytes")
    }

    // MARK: Writing

    package func overwrite(with bytes: [UInt8], mode: mode_t) throws { try writeInPlace(bytes, O_TRUNC, mode) }

    package func append(_ bytes: [UInt8], mode: mode_t) throws { try writeInPlace(bytes, O_APPEND, mode) }

    private func writeInPlace(_ bytes: [UInt8], _ flag: CInt, _ mode: mode_t) throws {
        let fd = try open(O_WRONLY | O_CREAT | flag, mode)
        try closing(fd) {
            _ = try regularFile(fd)
            try write(bytes, fd)
        }
    }

    /// Writes a new file in the same directory, and renames it to the target once all bytes are on the disk.
    package func replaceAtomically(with bytes: [UInt8], mode: mode_t) throws {
        let target = try statusOfTarget()
        // Until a replacement has the old file's permissions, only the owner may open it, since a descriptor opened
        // earlier would stay valid. A new file has its permissions from the start.
        let (fd, temporary) = try openTemporary(target == nil ? mode : 0o600)
        do {
            try closing(fd) {
                try write(bytes, fd)
                if let target { try adoptPermissions(of: target, fd) }
                _ = try retrying(.sync) { calls.sync(fd) }
            }
            try checkCancelled()
            _ = try retrying(.rename) { calls.rename(temporary, path) }
        } catch {
            _ = calls.unlink(temporary)
            throw error
        }
        // Syncs the directory, which holds the name. Errors are ignored, since the rename has succeeded.
        let folder = calls.open(self.folder, O_RDONLY | O_DIRECTORY, 0)
        guard folder >= 0 else { return }
        _ = calls.sync(CInt(folder))
        _ = calls.close(CInt(folder))
    }

    private func statusOfTarget() throws -> stat? {
        if path.utf8.contains(0) { throw SystemError(.open, EINVAL, detail: "a zero byte in the path \(path)") }
        var status = stat()
        let result = calls.statusOfPath(path, &status)
        if result == -Int(ENOENT) { return nil }
        _ = try result.orThrow(.fileStatus, path)
        return try checked(status)
    }

    /// Gives the new file the old file's group and mode. If the group cannot be set, the actual group gets no
    /// permission that others lack. Set-user-ID and set-group-ID bits never pass to another user or group.
    private func adoptPermissions(of target: stat, _ fd: CInt) throws {
        var own = stat()
        _ = try retrying(.fileStatus) { calls.status(fd, &own) }
        var mode = target.st_mode & 0o7777
        if own.st_uid != target.st_uid { mode &= ~S_ISUID }
        if own.st_gid != target.st_gid, calls.changeGroup(fd, target.st_gid) < 0 {
            mode &= ~S_ISGID
            mode &= ~0o070 | (mode & 0o007) << 3
        }
        _ = try retrying(.changeMode) { calls.changeMode(fd, mode) }
    }

    private func openTemporary(_ mode: mode_t) throws -> (CInt, String) {
        while true {
            // Not derived from the file's name, which may have the maximum length.
            let temporary = "\(folder)/.\(String(UInt64.random(in: 0 ... .max), radix: 36)).tmp"
            let result = calls.open(temporary, O_WRONLY | O_CREAT | O_EXCL, mode)
            if result == -Int(EINTR) || result == -Int(EEXIST) { continue }
            return (CInt(try result.orThrow(.open, temporary)), temporary)
        }
    }

    private var folder: String {
        // Compares bytes: a slash with a combining mark is another `Character`.
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
        return slash == path.utf8.startIndex ? "/." : String(path[..<slash])
    }

    private func write(_ bytes: [UInt8], _ fd: CInt) throws {
        try bytes.withUnsafeBytes { buffer in
            var sent = 0
            while sent < buffer.count {
                try checkCancelled()
                let count = min(buffer.count - sent, Self.chunk)
                let start = buffer.baseAddress! + sent
                let written = try retrying(.write) { calls.write(fd, start, count) }
                // Never happens for a file, but would make this loop endless.
                if written == 0 { throw SystemError(.write, EIO, detail: path) }
                sent += written
            }
        }
    }

    // MARK: Calls

    private func open(_ flags: CInt, _ mode: mode_t) throws -> CInt {
        if path.utf8.contains(0) { throw SystemError(.open, EINVAL, detail: "a zero byte in the path \(path)") }
        // O_NONBLOCK: opening a FIFO would wait for its other end. O_NOCTTY: a terminal would become a daemon's
        // controlling terminal.
        return CInt(try retrying(.open) { calls.open(path, flags | O_NONBLOCK | O_NOCTTY, mode) })
    }

    /// Throws for a FIFO, device or directory, because a read could block a pool thread forever.
    private func regularFile(_ fd: CInt) throws -> stat {
        var status = stat()
        _ = try retrying(.fileStatus) { calls.status(fd, &status) }
        return try checked(status)
    }

    private func checked(_ status: stat) throws(SystemError) -> stat {
        let kind = status.st_mode & S_IFMT
        if kind == S_IFDIR { throw SystemError(.open, EISDIR, detail: path) }
        if kind != S_IFREG { throw SystemError(.open, ENOTSUP, detail: "\(path): not a regular file") }
        return status
    }

    /// Closes `fd` in any case. Some file systems report a full disk only at close.
    private func closing(_ fd: CInt, _ body: () throws -> Void) throws {
        do { try body() } catch {
            _ = calls.close(fd)
            throw error
        }
        let result = calls.close(fd)
        if result < 0 && result != -Int(EINTR) { throw SystemError(.close, CInt(-result), detail: path) }
    }

    private func retrying(_ call: SystemCall, _ body: () -> Int) throws(SystemError) -> Int {
        while true {
            let result = body()
            if result != -Int(EINTR) { return try result.orThrow(call, path) }
        }
    }
}
