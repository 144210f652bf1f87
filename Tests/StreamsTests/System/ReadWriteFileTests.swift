@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

final class ReadWriteFileTests {
    private let folder = Folder()
    private let ledger = FileLedger()
    private let pool = try! ThreadPool(name: "files", threads: 1)

    private func read(_ name: String, limit: Int = 64 << 20, _ calls: FileSyscalls? = nil) -> Promise<[UInt8]> {
        readFile(folder / name, limit: limit, on: pool, calls: calls ?? ledger.calls)
    }

    private func write(
        _ bytes: [UInt8], _ name: String, _ manner: FileWriting = .replacing, mode: UInt32 = 0o666,
        _ calls: FileSyscalls? = nil
    ) -> Promise<Void> {
        writeFile(bytes, to: folder / name, mode: mode, manner, on: pool, calls: calls ?? ledger.calls)
    }

    deinit {
        pool.shutDown()
        expect(ledger.open.value.isEmpty, "descriptors leak")
    }

    @Test(.inRealTime, arguments: [0, 1, 4095, 4096, 262_144, 262_145, 1_000_003]) func whatIsWrittenIsRead(count: Int)
        throws
    {
        let loop = EventLoop.current
        let bytes = pattern(count)
        for manner in [FileWriting.replacing, .atomically] {
            try hang(write(pattern(count + 5), "a", manner))
            try hang(write(bytes, "a", manner))
            expectEqual(folder.contents("a"), bytes)
            expect(read("a"), gives: bytes)
            expect(read("a", limit: count), gives: bytes)
        }
        expectEqual(folder.names, ["a"])
        // A job counts until it has returned, a moment after its promise.
        pool.shutDown()
        expectEqual(loop.metrics.externalWork, 0)
    }

    @Test(.inRealTime) func theSharedPoolAndTextAreThePlainForms() throws {
        try hang(writeFile("häuser\n".utf8, to: folder / "text"))
        try hang(writeFile("two\n".utf8, to: folder / "text", .appending))
        expect(readFile(folder / "text"), gives: Array("häuser\ntwo\n".utf8))
    }

    @Test(.inRealTime) func filesThatDoNotKnowTheirSize() throws {
        let bytes = try hang(readFile("/proc/self/status"))
        expect(String(decoding: bytes, as: UTF8.self).hasPrefix("Name:\t"))
        expect(readFile("/proc/self/status", limit: 10), failsWith: SystemError(.read, EFBIG))
    }

    @Test(.inRealTime) func errorsNameCallAndPath() {
        folder.put([1, 2, 3], "three")
        expect(read("none"), failsWith: SystemError(.open, ENOENT))
        expect(read("none/none"), failsWith: SystemError(.open, ENOENT))
        expect(read("three/none"), failsWith: SystemError(.open, ENOTDIR))
        expect(read("three", limit: 2), failsWith: SystemError(.read, EFBIG))
        expect(read("three", limit: -1), failsWith: SystemError(.read, EINVAL))
        expect(read(""), failsWith: SystemError(.open, EISDIR))
        expect(read("a\0b"), failsWith: SystemError(.open, EINVAL))
        expect(write([1], "a\0b", .atomically), failsWith: SystemError(.open, EINVAL))
        expect(write([1], "none/none"), failsWith: SystemError(.open, ENOENT))
        expect(write([1], "none/none", .atomically), failsWith: SystemError(.open, ENOENT))
        expect(write([1], "", .atomically), failsWith: SystemError(.open, EISDIR))
        let missing = read("none")
        _ = try? hang(missing)
        expectEqual(missing.error.map { "\($0)" }, "open \(folder / "none"): No such file or directory (ENOENT)")
    }

    @Test func aNameMayBeAsLongAsNamesCanBe() throws {
        let name = String(repeating: "n", count: 255)
        try EventLoop.withLoop { _ in try hang(write([1, 2], name, .atomically)) }
        expectEqual(folder.names, [name])
    }

    @Test func aFifoIsRefusedAndHoldsNoThread() throws {
        expectEqual(mkfifo(folder / "fifo", 0o600), 0)
        EventLoop.withLoop { _ in
            expect(read("fifo"), failsWith: SystemError(.open, ENOTSUP))
            expect(write([1], "fifo"), failsWith: SystemError(.open, ENXIO))
            expect(write([1], "fifo", .atomically), failsWith: SystemError(.open, ENOTSUP))
            expect(readFile("/dev/zero", on: pool), failsWith: SystemError(.open, ENOTSUP))
        }
        expectEqual(folder.names, ["fifo"])
    }

    @Test(.inRealTime) func permissions() throws {
        let mask = umask(0o022)
        umask(mask)
        try hang(write([1], "a", mode: 0o640))
        expectEqual(folder.mode("a"), 0o640 & ~mask)
        try hang(write([1], "b", .atomically, mode: 0o600))
        expectEqual(folder.mode("b"), 0o600 & ~mask)
        chmod(folder / "b", 0o444)
        try hang(write([2], "b", .atomically, mode: 0o600))
        expectEqual(folder.mode("b"), 0o444)
        expectEqual(folder.contents("b"), [2])
    }

    /// A descriptor of the temporary file stays valid when its permissions are reduced.
    @Test(.inRealTime, arguments: [0o600, 0o640, 0o444, 0o4755] as [mode_t])
    func untilItIsCompleteOnlyTheOwnerCanOpenAFileThatReplaces(mode: mode_t) throws {
        folder.put([1], "old")
        chmod(folder / "old", mode)
        let real = ledger.calls
        let modes = Shared<[mode_t]>([])
        var calls = real
        calls.write = { fd, buffer, size in
            var status = stat()
            _ = real.status(fd, &status)
            let mode = status.st_mode & 0o7777
            modes.change { $0.append(mode) }
            return real.write(fd, buffer, min(size, 1))
        }
        try hang(write([2, 3], "old", .atomically, mode: 0o666, calls))
        expectEqual(modes.value, [0o600, 0o600])
        expectEqual(folder.mode("old"), mode)
        expectEqual(folder.contents("old"), [2, 3])
    }

    /// If the group cannot be kept, the process's own group gets no more than everybody.
    @Test(
        .inRealTime,
        arguments: [(0o640, 0o600), (0o664, 0o644), (0o2755, 0o755), (0o4777, 0o777)] as [(mode_t, mode_t)])
    func aFileOfAnotherGroupOrOwnerIsNotOpenedToMore(mode: mode_t, expected: mode_t) throws {
        folder.put([1], "old")
        chmod(folder / "old", mode)
        let real = ledger.calls
        var calls = real
        calls.statusOfPath = { path, status in
            let result = real.statusOfPath(path, &status)
            status.st_uid += 1
            status.st_gid += 1
            return result
        }
        let groups = Shared<[gid_t]>([])
        calls.changeGroup = { _, group in
            groups.change { $0.append(group) }
            return -Int(EPERM)
        }
        try hang(write([2], "old", .atomically, calls))
        expectEqual(folder.mode("old"), expected)
        expectEqual(groups.value, [getegid() + 1])
        // If it can be kept, the group has its earlier permissions.
        chmod(folder / "old", mode)
        calls.changeGroup = { _, _ in 0 }
        try hang(write([3], "old", .atomically, calls))
        expectEqual(folder.mode("old"), mode & ~0o4000)
    }

    /// With a combining mark after it a slash is not a separate `Character`.
    @Test(.inRealTime) func aNameMayBeginWithACombiningMark() throws {
        let name = "\u{301}name"
        let real = ledger.calls
        let opened = Shared<[String]>([])
        var calls = real
        calls.open = { path, flags, mode in
            opened.change { $0.append(path) }
            return real.open(path, flags, mode)
        }
        try hang(write([1], name, .atomically, calls))
        expectEqual(folder.contents(name), [1])
        expectEqual(opened.value.count, 2)
        expect(opened.value.allSatisfy { $0.utf8.starts(with: folder.path.utf8) })
        expectEqual(opened.value.last, folder.path)
        unlink(folder / name)
    }

    @Test(.inRealTime) func aFileLargerThanAnyMemoryIsAnErrorAndNoTrap() throws {
        folder.put([1], "sparse")
        let real = ledger.calls
        for size in [Int.max, .max - 1, 1 << 60] {
            var calls = real
            calls.status = { fd, status in
                let result = real.status(fd, &status)
                status.st_size = size
                return result
            }
            expect(read("sparse", limit: .max, calls), failsWith: SystemError(.read, ENOMEM))
        }
    }

    @Test(.inRealTime) func noTerminalBecomesThatOfTheProcess() throws {
        let real = ledger.calls
        let flags = Shared<[CInt]>([])
        var calls = real
        let target = folder / "a"
        calls.open = { path, flag, mode in
            if path == target { flags.change { $0.append(flag) } }
            return real.open(path, flag, mode)
        }
        try hang(write([1], "a", .replacing, calls))
        try hang(write([1], "a", .appending, calls))
        expect(read("a", calls), gives: [1, 1])
        expect(flags.value.count == 3 && flags.value.allSatisfy { $0 & O_NOCTTY != 0 })
    }

    @Test(.inRealTime) func shortCountsAndInterruptionsAreGoneOnWith() throws {
        let bytes = pattern(10_000)
        let real = ledger.calls
        let count = Shared(0)
        var calls = real
        calls.read = { fd, buffer, size in
            count.change { $0 += 1 }
            return count.value % 3 == 0 ? -Int(EINTR) : real.read(fd, buffer, min(size, 997))
        }
        calls.write = { fd, buffer, size in
            count.change { $0 += 1 }
            return count.value % 3 == 0 ? -Int(EINTR) : real.write(fd, buffer, min(size, 991))
        }
        calls.sync = { fd in
            count.change { $0 += 1 }
            return count.value % 2 == 0 ? -Int(EINTR) : real.sync(fd)
        }
        for manner in [FileWriting.replacing, .atomically, .appending] {
            try hang(write([], "a"))
            try hang(write(bytes, "a", manner, calls))
            expect(read("a", calls), gives: bytes)
        }
    }

    enum Fault: CaseIterable { case quota, space, sync, close, rename, endless }

    @Test(.inRealTime, arguments: Fault.allCases) func aFailureLeavesTheOldFileAsItWas(fault: Fault) {
        folder.put([1, 2, 3], "old")
        let real = ledger.calls
        let count = Shared(0)
        var calls = real
        let expected: SystemError
        switch fault {
        case .quota, .space:
            let code = fault == .quota ? EDQUOT : ENOSPC
            expected = SystemError(.write, code)
            calls.write = { fd, buffer, size in
                count.change { $0 += 1 }
                return count.value > 1 ? -Int(code) : real.write(fd, buffer, min(size, 100))
            }
        case .sync:
            expected = SystemError(.sync, EIO)
            calls.sync = { _ in -Int(EIO) }
        case .close:
            expected = SystemError(.close, EDQUOT)
            calls.close = { fd in
                _ = real.close(fd)
                return -Int(EDQUOT)
            }
        case .rename:
            expected = SystemError(.rename, EROFS)
            calls.rename = { _, _ in -Int(EROFS) }
        case .endless:
            expected = SystemError(.write, EIO)
            calls.write = { _, _, _ in 0 }
        }
        expect(write(pattern(1000), "old", .atomically, calls), failsWith: expected)
        expectEqual(folder.contents("old"), [1, 2, 3])
        expectEqual(folder.names, ["old"], "nothing is left beside it")
    }

    @Test(.inRealTime) func whatIsCancelledBeforeItsTurnDoesNothing() {
        let gate = Gate()
        let holder = Guarantee(on: pool) { gate.wait() }
        let writing = write([1], "a")
        // One snapshot: the job of the gate moves from the queue to a thread meanwhile.
        let metrics = pool.metrics
        expectEqual(metrics.queued + metrics.busy, 2)
        writing.cancel()
        gate.open()
        hang(holder)
        expect(writing, failsWith: PromiseError.cancelled)
        // After it in the queue.
        expect(read("a"), failsWith: SystemError(.open, ENOENT))
    }

    @Test(.inRealTime) func whatIsCancelledMeanwhileEndsAtTheNextChunk() throws {
        folder.put([9], "old")
        for manner in [FileWriting.atomically, .replacing] {
            let began = Gate()
            let goOn = Gate()
            let writes = Shared(0)
            let real = ledger.calls
            var calls = real
            calls.write = { fd, buffer, size in
                writes.change { $0 += 1 }
                began.open()
                goOn.wait()
                return real.write(fd, buffer, size)
            }
            let writing = write(pattern(3_000_000), "old", manner, calls)
            began.wait()
            writing.cancel()
            goOn.open()
            expect(writing, failsWith: PromiseError.cancelled)
            // After it in the queue.
            let bytes = try hang(read("old"))
            expectEqual(writes.value, 1)
            expectEqual(bytes.count, (manner == .atomically ? 1 : 262_144))
            expectEqual(folder.names, ["old"])
        }
    }
}
