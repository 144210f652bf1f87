@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

struct ChildProcessTests {
    private func cat(_ streams: ChildProcess.Stream = .pipe) throws -> ChildProcess {
        try .spawn("/bin/cat", standardInput: streams, standardOutput: .pipe, standardError: .null)
    }

    @Test(.network(turns: 4000)) func whatIsWrittenComesBackAndTheEndToo() throws {
        let child = try cat()
        // With an input that does not block, cat would fail with EAGAIN.
        hang(after(.milliseconds(5)))
        let bytes = pattern(1_000_000)
        let writing = child.standardInput!.write(bytes).done { child.standardInput!.close() }
        let echoed = readToEnd(child.standardOutput!)
        expect(echoed, gives: bytes)
        try hang(writing)
        expect(child.exit, gives: .exited(0))
        expect(child.standardError == nil)
    }

    @Test(.network) func theExitIsReportedToWhoeverAsksWhenever() throws {
        let child = try ChildProcess.spawn("sh", arguments: ["-c", "exit 5"])
        let first = child.exit
        let second = child.exit
        expect(first, gives: .exited(5))
        expect(second, gives: .exited(5))
        expect(child.exit, gives: .exited(5))
        expect(child.waitOrKill(), gives: .exited(5))
    }

    @Test(.network) func cancellingTheExitLeavesTheChildAlone() throws {
        let child = try cat()
        child.exit.cancel()
        let late = child.exit.timeout(.milliseconds(1))
        expect(late, failsWith: PromiseError.timedOut)
        expectEqual(child.exitStatus, nil)
        child.standardInput!.close()
        expect(child.exit, gives: .exited(0))
    }

    @Test(.network, arguments: [true, false]) func exitOrKillKillsWhatTakesTooLong(hasOwnGroup: Bool) throws {
        let child = try ChildProcess.spawn("/bin/sleep", arguments: ["1000"], ownGroup: hasOwnGroup)
        let end = child.exit
        expect(child.waitOrKill().timeout(.milliseconds(5)), failsWith: PromiseError.timedOut)
        expect(end, gives: .signaled(SIGKILL))
        #expect(throws: SystemError(.kill, ESRCH)) { try child.kill(SIGTERM) }
    }

    @Test(.network) func signalsEndIt() throws {
        let child = try ChildProcess.spawn("/bin/sleep", arguments: ["1000"])
        #expect(throws: SystemError(.kill, EINVAL)) { try child.kill(9999) }
        try child.kill(SIGTERM)
        expect(child.exit, gives: .signaled(SIGTERM))
    }

    @Test(.network) func releasingItClosesItsPipesAndReapsItInTheEnd() throws {
        var child: ChildProcess? = try cat()
        let process = child!.processID
        child = nil
        // It ends with its input, and then the loop has nothing left.
        try net.loop.run()
        expectEqual(waitpid(process, nil, WNOHANG), -1)
        expect(child == nil)
    }

    @Test(.network) func anUnreferencedOneLetsTheLoopEnd() throws {
        let child = try cat()
        expect(net.loop.isAlive)
        child.unref()
        expect(!net.loop.isAlive)
        try net.loop.run()
        child.ref()
        child.standardInput!.close()
        try net.loop.run()
        expectEqual(child.exitStatus, .exited(0))
    }

    @Test func aHandlerThatWaitsAtTheEndOfTheLoopHearsNoMore() throws {
        var process: CInt = 0
        let lines = try logged {
            try withNetwork { _ in
                let child = try ChildProcess.spawn("/bin/sleep", arguments: ["1000"])
                process = child.processID
                child.exit.done { _ in Issue.record("the loop has ended") }
            }
        }
        expectEqual(lines, ["an event loop ended with 1 undelivered handler"])
        kill(process, SIGKILL)
        // No loop reaps it before the next child is started, and the monitor of exit tests spins while there is a
        // zombie.
        var status: CInt = 0
        waitpid(process, &status, 0)
    }

    @Test(.network) func aFailureToStartIsAboutTheProgramOrItsFolder() throws {
        let folder = Folder()
        folder.put([], "file")
        let there = " in the working directory "
        for (program, directory, code, subject) in [
            ("pwd", "/none", ENOENT, "pwd\(there)/none"),
            ("pwd", folder["file"], ENOTDIR, "pwd\(there)\(folder["file"])"),
            ("pwd-none", "/", ENOENT, "pwd-none"), ("pwd-none", nil, ENOENT, "pwd-none"),
            (folder["file"], "/", EACCES, folder["file"]),
        ] as [(String, String?, CInt, String)] {
            let error = ChildProcess.run(program, workingDirectory: directory).error as? SystemError
            expect(error?.code == code && error?.detail == subject, "\(String(describing: error))")
        }
        let long = ChildProcess.run("true", [String(repeating: "x", count: 1 << 21)]).error as? SystemError
        expect(long?.code == E2BIG && long?.detail == "true", "\(String(describing: long))")
    }

    /// A child that has written and ended before the loop sees either.
    @Test(.network, arguments: [false, true], [false, true])
    func theExitIsReportedAfterTheLine(isError: Bool, exitIsAskedFirst: Bool) throws {
        let child = try ChildProcess.spawn(
            "sh", arguments: ["-c", isError ? "echo line >&2; exit 3" : "echo line; exit 3"], standardOutput: .pipe,
            standardError: .pipe)
        awaitZombie(child)
        var order: [String] = []
        let pipe = isError ? child.standardError! : child.standardOutput!
        let ask = { () -> Void in child.exit.done { order.append("\($0)") } }
        if exitIsAskedFirst { ask() }
        let line = pipe.readLine().done { order.append($0 ?? "end") }
        if !exitIsAskedFirst { ask() }
        try hang(line)
        hang(child.exit)
        expectEqual(order, ["line", "exited with code 3"])
    }

    @Test(.network) func theExitIsReportedAfterAllThatIsBeingRead() throws {
        let child = try ChildProcess.spawn(
            "sh", arguments: ["-c", "head -c 300000 /dev/zero; echo end >&2"], standardOutput: .pipe,
            standardError: .pipe)
        var (count, lines, atTheEnd) = (0, 0, (0, 0))
        child.exit.done { _ in atTheEnd = (count, lines) }
        let bytes = child.standardOutput!.forEachChunk { count += $0.byteCount }
        let text = child.standardError!.forEachLine { _ in lines += 1 }
        try hang(when(fulfilled: bytes, text))
        hang(child.exit)
        expect(atTheEnd == (300_000, 1), "\(atTheEnd)")
    }

    /// Nobody reads, or another process keeps writing.
    @Test(.network(turns: 4000), arguments: [false, true]) func theExitIsReportedWithoutTheEndOfTheOutput(isRead: Bool)
        throws
    {
        let child = try ChildProcess.spawn(
            "sh", arguments: ["-c", "yes & exit 3"], standardOutput: .pipe, standardError: .null, ownGroup: true)
        let output = child.standardOutput!
        if isRead { output.forEachChunk { _ in }.catch(policy: .allErrors) { _ in } }
        expectEqual(hang(child.exit), .exited(3))
        try? child.kill(SIGKILL, wholeGroup: true)
    }

    /// Another process writes as fast as this one reads: here the kernel says so.
    @Test(.network) func theExitIsReportedAfterSomeTurnsInAnyCase() throws {
        net.kernel.poll = { _, _ in 1 }
        let child = try ChildProcess.spawn(
            "sh", arguments: ["-c", "tail -f /dev/null & exit 3"], standardOutput: .pipe, ownGroup: true)
        let line = child.standardOutput!.readLine()
        expectEqual(hang(child.exit), .exited(3))
        expect(line.isPending)
        try child.kill(SIGKILL, wholeGroup: true)
        child.standardOutput!.abort()
    }

    @Test(.network) func aFailureToStartLeavesNoPipes() throws {
        #expect(throws: SystemError(.spawn, ENOENT)) {
            _ = try ChildProcess.spawn("/nowhere", standardInput: .pipe, standardOutput: .pipe, standardError: .pipe)
        }
        let real = net.kernel
        var pipes = 0
        net.kernel.pipe = {
            pipes += 1
            return pipes == 3 ? -Int(EMFILE) : real.pipe($0)
        }
        #expect(throws: SystemError(.pipe, EMFILE)) {
            _ = try ChildProcess.spawn("/bin/true", standardInput: .pipe, standardOutput: .pipe, standardError: .pipe)
        }
        // Only the loop's own descriptors: for epoll, mail and timers.
        expectEqual(net.ledger.open.count, 3)
    }

    @Test(.network) func aDescriptorOfOnesOwnIsLent() throws {
        let folder = Folder()
        folder.put(Array("from a file".utf8), "input")
        let fd = open(folder / "input", O_RDONLY | O_CLOEXEC)
        let child = try cat(.descriptor(fd))
        let text = try hang(readToEnd(child.standardOutput!))
        expectEqual(String(decoding: text, as: UTF8.self), "from a file")
        expectEqual(close(fd), 0, "it is still ours")
        expect(child.exit, gives: .exited(0))
    }
}

/// Waits until the child has ended, without reaping it.
private func awaitZombie(_ child: ChildProcess) {
    var info = siginfo_t()
    while waitid(P_PID, id_t(child.processID), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR {}
}
