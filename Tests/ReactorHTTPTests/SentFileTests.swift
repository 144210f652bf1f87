/// Files that the kernel sends, and those that it does not.
struct SentFileTests {
    /// What the kernel does with a file.
    enum Kernel: CaseIterable {
        case sends, sendsLittle, isInterrupted, isFull, refuses, hasOnlyTheName, hasNothing, cannotTell, isReal
        case takesHalfAHead, takesNoHead
    }

    /// A period of the content, which is no multiple of a chunk.
    private static let period = (0..<2_003).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
    private static func bytes(_ count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count { bytes += period.prefix(count - bytes.count) }
        return bytes
    }

    /// Calls for files that the kernel has in memory, on any file system.
    private var inMemory: FileSyscalls {
        var calls = FileSyscalls()
        calls.openCached = { FileSyscalls.real.open($0, $1, 0) }
        calls.readCached = FileSyscalls.real.readAt
        return calls
    }

    /// An otherwise empty folder with a file of `count` bytes, until the end of the test.
    private func makeFile(_ count: Int) throws -> Folder {
        let folder = Folder()
        atEnd { withExtendedLifetime(folder) {} }
        try hang(writeFile(Self.bytes(count), to: folder["file"]), timeout: patience)
        return folder
    }

    /// Serves the files of `folder` to a client on a loop with `syscalls`. Returns the errors of the server.
    private func serve(
        _ folder: String, _ calls: FileSyscalls, _ syscalls: Syscalls, _ options: HTTPOptions = HTTPOptions(),
        _ body: (Connection) throws -> Void
    ) throws -> [any Error] {
        let files = StaticFiles(folder, index: "index.html", headers: [:], on: .shared, calls: calls)
        try EventLoop.withLoop(syscalls: syscalls) { _ in
            try ReactorHTTPTests.serve(limits: options) { .later(files.response(to: $0)) }
            try body(connected())
            try endServer()
        }
        return errors
    }

    private static let get = "GET /file HTTP/1.1\r\nHost: x\r\n\r\n"

    /// Two requests at once, so that the second answer follows the first file.
    private func answers(_ client: Connection) throws -> [UInt8] {
        let last = "GET /file HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        return try hang(client.write(Self.get + last).then { client.receiveAll() }, timeout: patience)
    }

    /// The bodies of `count` answers with files of `size` bytes.
    private func bodies(_ answers: [UInt8], _ count: Int, _ size: Int) -> [[UInt8]] {
        var (rest, bodies) = (answers[...], [[UInt8]]())
        while bodies.count < count, let end = rest.indices.first(where: { rest[$0...].starts(with: "\r\n\r\n".utf8) }) {
            let head = String(decoding: rest[..<end], as: UTF8.self)
            guard head.contains("Content-Length: \(size)"), head.hasPrefix("HTTP/1.1 200 ") else { return [] }
            let body = rest[(end + 4)...].prefix(size)
            bodies.append(Array(body))
            rest = rest[body.endIndex...]
        }
        return rest.isEmpty ? bodies : []
    }

    @Test(.inRealTime, arguments: Kernel.allCases, [0, 10, 32_768, 32_769, 131_072, 300_000, 700_000])
    func filesArriveWhole(kernel: Kernel, size: Int) throws {
        var (calls, table, sent, used) = (inMemory, Syscalls(), 0, 0)
        let real = table.sendFile
        table.sendFile = { fd, file, offset, count in
            used += 1
            switch kernel {
            case .refuses: return -Int(EINVAL)
            case .isFull where used % 2 == 1: return -Int(EAGAIN)
            case .isInterrupted where used % 2 == 1: return -Int(EINTR)
            default: break
            }
            let result = real(fd, file, offset, kernel == .sendsLittle ? min(count, 40_000) : count)
            sent += max(result, 0)
            return result
        }
        let (send, sendMore) = (table.send, table.sendMore)
        var heads = 0
        table.sendMore = { fd, bytes, count in
            heads += 1
            switch kernel {
            case .takesHalfAHead: return sendMore(fd, bytes, min(count, 50))
            case .takesNoHead: return -Int(EAGAIN)
            case .isInterrupted where heads % 2 == 1: return -Int(EINTR)
            default: return sendMore(fd, bytes, count)
            }
        }
        // No head of a file that is sent leaves alone.
        var alone = 0
        table.send = { fd, bytes, count in
            if count < 500, UnsafeRawBufferPointer(start: bytes, count: count).starts(with: "HTTP/1.1 200".utf8) {
                alone += 1
            }
            return send(fd, bytes, count)
        }
        switch kernel {
        case .hasOnlyTheName: calls.readCached = { _, _, _, _ in -Int(EAGAIN) }
        case .hasNothing:
            calls.openCached = { _, _ in -Int(EAGAIN) }
            calls.readCached = { _, _, _, _ in -Int(EAGAIN) }
        case .cannotTell:
            calls.openCached = { _, _ in -Int(ENOSYS) }
            calls.readCached = { _, _, _, _ in -Int(EOPNOTSUPP) }
        case .isReal: calls = .real
        default: break
        }
        let folder = try makeFile(size)
        let errors = try serve(folder.path, calls, table) { client in
            expect(bodies(try answers(client), 2, size) == [[UInt8]](repeating: Self.bytes(size), count: 2))
        }
        expect(errors.isEmpty)
        let reads = [
            Kernel.refuses, .hasOnlyTheName, .hasNothing, .cannotTell, .isReal, .takesHalfAHead, .takesNoHead,
        ].contains(kernel)
        // The rest is what the socket has had no room for.
        let least = kernel == .isFull ? size - 1 : size
        if !reads { expect(size <= 32_768 ? used == 0 : sent > least, "\(sent) bytes in \(used) calls") }
        if kernel == .hasOnlyTheName { expectEqual(used, 0) }
        if size > 32_768 && kernel == .sends { expect(alone == 0 && heads == 2, "\(heads) heads, \(alone) alone") }
    }

    /// What a `transform` gets does not depend on what the kernel has in memory at the moment.
    @Test(.inRealTime, arguments: [10, 32_768, 32_769, 131_072, 131_073])
    func aFileHasOneFormOfBody(size: Int) throws {
        let folder = try makeFile(size)
        let forms = LockedValue<[Bool]>([])
        var options = HTTPOptions()
        options.transform = { _, response in
            let isStream = if case .stream? = response.body { true } else { false }
            forms.withLock { $0.append(isStream) }
        }
        var nothing = inMemory
        nothing.openCached = { _, _ in -Int(EAGAIN) }
        nothing.readCached = { _, _, _, _ in -Int(EAGAIN) }
        var onlyTheName = nothing
        onlyTheName.openCached = inMemory.openCached
        for calls in [inMemory, nothing, onlyTheName] {
            let errors = try serve(folder.path, calls, Syscalls(), options) { client in
                expect(bodies(try answers(client), 2, size) == [[UInt8]](repeating: Self.bytes(size), count: 2))
            }
            expect(errors.isEmpty)
        }
        expectEqual(Set(forms.withLock { $0 }).count, 1)
        expectEqual(forms.withLock { $0.count }, 6)
    }

    /// Whatever is found and answered, what was opened is closed.
    @Test(.inRealTime) func noDescriptorIsLeft() throws {
        let folder = try makeFile(50_000)
        let (opened, closed) = (LockedValue(0), LockedValue(0))
        var calls = FileSyscalls()
        let real = FileSyscalls.real
        @Sendable func noted(_ result: Int) -> Int {
            if result >= 0 { opened.withLock { $0 += 1 } }
            return result
        }
        calls.open = { noted(real.open($0, $1, $2)) }
        calls.openCached = { noted(real.open($0, $1, 0)) }
        calls.close = { fd in
            closed.withLock { $0 += 1 }
            return real.close(fd)
        }
        mkdir(folder["sub"], 0o755)
        mkfifo(folder["fifo"], 0o644)
        symlink("file", folder["link"])
        let requests = [
            ("HEAD /file", "", 200), ("GET /link", "", 200), ("GET /file", "Range: bytes=0-9\r\n", 206),
            ("GET /file", "Range: bytes=50000-\r\n", 416), ("GET /file", "If-None-Match: *\r\n", 304),
            ("GET /file", "If-Match: \"x\"\r\n", 412), ("GET /sub", "", 301), ("GET /sub/", "", 404),
            ("GET /fifo", "", 404), ("GET /none", "", 404), ("GET /file/", "", 404), ("GET /", "", 404),
            ("GET /%2e%2e/file", "", 404), ("GET /fi%00le", "", 404), ("GET /%2Ffile", "", 200),
            ("POST /file", "Content-Length: 0\r\n", 405),
        ]
        let errors = try serve(folder.path, calls, Syscalls()) { client in
            let sent = requests.map { "\($0.0) HTTP/1.1\r\nHost: x\r\n\($0.1)\r\n" }.joined()
            let got = client.write(sent).then { client.shutdownWrite() }.then { client.receiveAll() }
            let answer = String(decoding: try hang(got, timeout: patience), as: UTF8.self)
            expectEqual(statuses(answer), requests.map { $0.2 })
        }
        expect(errors.isEmpty)
        expect(opened.withLock { $0 } > 8)
        expectEqual(opened.withLock { $0 }, closed.withLock { $0 })
    }

    @Test(.inRealTime, arguments: ["0-", "70000-", "1-2", "0-299998", "-131072"])
    func partsAreSent(_ range: String) throws {
        let folder = try makeFile(300_000)
        let errors = try serve(folder.path, inMemory, Syscalls()) { client in
            let request = "GET /file HTTP/1.1\r\nHost: x\r\nRange: bytes=\(range)\r\nConnection: close\r\n\r\n"
            let answer = try hang(client.write(request).then { client.receiveAll() }, timeout: patience)
            let bounds = range.split(separator: "-", omittingEmptySubsequences: false).map { Int($0) }
            let start = bounds[0] ?? 300_000 - (bounds[1] ?? 0)
            let end = bounds[0] == nil ? 299_999 : bounds[1] ?? 299_999
            let expected = Self.bytes(300_000)[start...end]
            expect(answer.suffix(expected.count) == expected && answer.count < expected.count + 500)
        }
        expect(errors.isEmpty)
    }

    /// What has been announced cannot be taken back: the connection ends.
    @Test(.inRealTime, arguments: [Kernel.sends, .refuses], [0, 50_000, 1 << 20])
    func aFileThatShrinksEndsTheConnection(kernel: Kernel, left: Int) throws {
        let folder = try makeFile(0)
        truncate(folder["file"], 30_000_000)
        var table = Syscalls()
        let real = table.sendFile
        table.sendFile = { kernel == .refuses ? -Int(EINVAL) : real($0, $1, $2, $3) }
        let errors = try serve(folder.path, inMemory, table) { client in
            var count = 0
            let got = client.write(Self.get).then {
                client.forEachChunk { chunk in
                    if count == 0 { truncate(folder["file"], left) }
                    count += chunk.byteCount
                }
            }
            // The reset of the abort, or the end.
            _ = try? hang(got, timeout: patience)
            expect(count > 0 && count < 30_000_000, "\(count) bytes")
        }
        expect(errors.count == 1 && errors.first is BodyError, "\(errors)")
    }

    /// A client that leaves in the middle, and its errno in the call: nobody is told, and the file is closed.
    @Test(.inRealTime, arguments: [0, ECONNRESET, EPIPE, ETIMEDOUT])
    func aClientMayLeave(code: CInt) throws {
        let closed = LockedValue(0)
        let folder = try makeFile(5_000_000)
        var (calls, table, used) = (inMemory, Syscalls(), 0)
        calls.close = { fd in
            closed.withLock { $0 += 1 }
            return FileSyscalls.real.close(fd)
        }
        let real = table.sendFile
        table.sendFile = { fd, file, offset, count in
            used += 1
            return code != 0 && used == 2 ? -Int(code) : real(fd, file, offset, min(count, 200_000))
        }
        let errors = try serve(folder.path, calls, table) { client in
            try hang(client.write(Self.get), timeout: patience)
            let first = try hang(client.receive(), timeout: patience)
            expect(!first.isEmpty)
            if code == 0 { client.abort() } else { _ = try? hang(client.receiveAll(), timeout: patience) }
        }
        expect(errors.isEmpty, "\(errors)")
        expect(used > 0)
        expectEqual(closed.withLock { $0 }, 1)
    }

    /// No more of the file is in memory than a piece, and the client is not waited for in vain.
    @Test(.inRealTime) func aClientThatDoesNotReadHoldsLittle() throws {
        let folder = try makeFile(5_000_000)
        let files = StaticFiles(folder.path, index: "", headers: [:], on: .shared, calls: inMemory)
        try withVirtualTime { _ in
            let loop = EventLoop.current
            let (client, server) = try Connection.pair()
            let began = loop.now
            let served = server.serveHTTP { request in files.response(to: request) }
            try hang(client.write(Self.get), timeout: .seconds(1))
            try hang(after(.seconds(1)), timeout: .seconds(2))
            expect((1...20_000).contains(server.queuedBytes), "\(server.queuedBytes) bytes are queued")
            _ = try? hang(served, timeout: .seconds(3600))
            expect(served.result != nil && began.duration(to: loop.now) < .seconds(70))
            client.abort()
        }
    }

    /// Nothing has been sent yet, so the client learns that the server has failed.
    @Test(.inRealTime, arguments: [10, 300_000])
    func aDiskThatFailsIsAnswered(size: Int) throws {
        let folder = try makeFile(size)
        var calls = inMemory
        calls.readCached = { _, _, _, _ in -Int(EAGAIN) }
        calls.readAt = { _, _, _, _ in -Int(EIO) }
        let errors = try serve(folder.path, calls, Syscalls()) { client in
            let answer = try hang(
                client.write(Self.get).then { client.shutdownWrite() }.then { client.receiveAll() },
                timeout: patience)
            expectEqual(statuses(String(decoding: answer, as: UTF8.self)), [500])
        }
        expect(errors.count == 1 && (errors.first as? SystemError)?.code == EIO, "\(errors)")
    }

    // MARK: Received

    /// A disk that is full, or fails: no part of the body stays there, under any name.
    @Test(.inRealTime, arguments: [SystemCall.open, .write, .sync, .rename], [ENOSPC, EIO, EDQUOT])
    func aBodyThatCannotBeSavedLeavesNothing(call: SystemCall, code: CInt) throws {
        let folder = try makeFile(10)
        var calls = FileSyscalls()
        let real = FileSyscalls.real
        let temporary = LockedValue<[String]>([])
        calls.open = { path, flags, mode in
            temporary.withLock { $0.append(path) }
            return real.open(path, flags, mode)
        }
        switch call {
        case .open: calls.open = { _, _, _ in -Int(code) }
        case .write:
            let count = LockedValue(0)
            calls.write = { fd, bytes, size in
                // Some of it has been written.
                let calls = count.withLock { (count: inout Int) -> Int in
                    count += 1
                    return count
                }
                return calls > 2 ? -Int(code) : real.write(fd, bytes, min(size, 1000))
            }
        case .sync: calls.sync = { _ in -Int(code) }
        default: calls.rename = { _, _ in -Int(code) }
        }
        let saved = try save(Self.bytes(200_000), to: folder["file"], calls)
        let error: SystemError? = if case .failure(let error) = saved { error as? SystemError } else { nil }
        expect(error?.code == code && error?.call == call, "\(saved)")
        expectEqual(try hang(readFile(folder["file"]), timeout: patience), Self.bytes(10))
        let isLeft = { temporary.withLock { $0.contains { access($0, F_OK) == 0 } } }
        try hang(repeatWhile { after(.milliseconds(1)).map(isLeft) }, timeout: patience)
        expect(call == .open || temporary.withLock { $0.count } == 1)
    }

    @Test(.inRealTime) func aBodyIsSavedInShortAndInterruptedWrites() throws {
        let folder = try makeFile(10)
        var calls = FileSyscalls()
        let count = LockedValue(0)
        calls.write = { fd, bytes, size in
            let isOdd = count.withLock { (count: inout Int) -> Bool in
                count += 1
                return count % 2 == 1
            }
            return isOdd ? -Int(EINTR) : FileSyscalls.real.write(fd, bytes, min(size, 999))
        }
        let saved = try save(Self.bytes(200_000), to: folder["file"], calls)
        expectEqual(try saved.get(), 200_000)
        expectEqual(try hang(readFile(folder["file"]), timeout: patience), Self.bytes(200_000))
    }

    /// The result of a request whose body is saved.
    private func save(_ bytes: [UInt8], to path: String, _ calls: FileSyscalls) throws -> Result<Int, any Error> {
        var result: Result<Int, any Error>?
        try ReactorHTTPTests.serve { request in
            let saved = request.body.save(to: path, mode: 0o644, on: .shared, calls: calls)
            return .later(saved.tap { result = $0 }.map { Response("\($0)") })
        }
        let fetched = client.fetch("http://\(address)/", .put, body: .bytes(bytes)).then { $0.body.bytes() }
        _ = try hang(fetched, timeout: patience)
        return try #require(result)
    }
}
