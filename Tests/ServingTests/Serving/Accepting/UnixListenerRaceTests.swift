@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// Servers that take one Unix path at the same time: the first one has it, the others are rejected.
struct UnixListenerRaceTests {
    /// The moment at which a second server starts while the first is starting.
    enum Gap: CaseIterable { case beforeTheStaleFileIsRemoved, beforeTheFirstListens, beforeAFreshSocketListens }

    @Test(arguments: Gap.allCases) func oneOfTwoThatStartAtOnceHasThePath(gap: Gap) throws {
        let folder = Folder()
        if gap != .beforeAFreshSocketListens { folder.leaveStaleSocket("a") }
        let address = folder.address("a")
        var second: ListeningSocket?
        var refusal: SystemError?
        func startTheSecond() {
            guard second == nil && refusal == nil else { return }
            do throws(SystemError) {
                second = try ListeningSocket(on: address, backlog: 16, mode: nil, [], CountingSyscalls())
            } catch { refusal = error }
        }
        try withNetwork { net in
            let real = net.kernel
            switch gap {
            case .beforeTheStaleFileIsRemoved:
                net.kernel.unlink = {
                    if $0 == folder / "a" { startTheSecond() }
                    return real.unlink($0)
                }
            case .beforeTheFirstListens, .beforeAFreshSocketListens:
                net.kernel.listen = {
                    startTheSecond()
                    return real.listen($0, $1)
                }
            }
            let first = try net.listen("\(address)")
            expect(second == nil, "both go on, and one of them can no longer be reached")
            expectEqual(refusal, SystemError(.bind, EADDRINUSE))
            expectEqual(refusal?.detail?.hasPrefix("\(address)"), true)
            expectEqual(folder.names, ["a"], "no lock is left")
            let client = try Peer(to: address)
            let accepted = try net.accept(from: first)
            client.close()
            hang(accepted.close())
            first.close()
        }
        second?.close()
        expect(folder.names.isEmpty)
    }

    /// The process that holds it may be stopped.
    @Test(.network) func aLockThatIsHeldIsNotWaitedFor() throws {
        let folder = Folder()
        folder.leaveStaleSocket("a")
        let fd = open(folder / ".a.reactor-lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        expectEqual(Syscalls().lock(fd), 0)
        #expect(throws: SystemError(.bind, EADDRINUSE)) { try net.listen("unix:\(folder / "a")") }
        expectEqual(folder.names, [".a.reactor-lock", "a"])
        // A process that dies leaves the file, but not the lock.
        close(fd)
        let listener = try net.listen("unix:\(folder / "a")")
        expectEqual(folder.names, ["a"])
        listener.close()
    }

    /// Then a free path can be taken, but nothing is replaced.
    @Test func withoutALockNothingIsReplaced() throws {
        let folder = Folder()
        folder.leaveStaleSocket("a")
        let before = folder.status("a")
        try withNetwork { net in
            for code in [EACCES, ELOOP, ENFILE] {
                net.kernel.open = { _, _, _ in -Int(code) }
                #expect(throws: SystemError(.bind, EADDRINUSE)) { try net.listen("unix:\(folder / "a")") }
                expectEqual(folder.status("a")?.st_ino, before?.st_ino)
                try net.listen("unix:\(folder / "b")").close()
            }
        }
        expectEqual(folder.names, ["a"])
    }

    /// A file of that name that has content, or is not a regular file, belongs to another program.
    @Test func aFileThatIsNoLockIsNotTouched() throws {
        let folder = Folder()
        let name = ".a.reactor-lock"
        for make in [
            { folder.put([1], name) }, { _ = mkfifo(folder / name, 0o600) }, { _ = symlink("a", folder / name) },
        ] {
            make()
            try withNetwork { net in
                try net.listen("unix:\(folder / "a")").close()
                expectEqual(folder.names, [name])
            }
            unlink(folder / name)
        }
    }

    @Test func aLockThatWasRemovedMeanwhileIsTakenAnew() throws {
        let folder = Folder()
        try withNetwork { net in
            let real = net.kernel.lock
            var rounds = 0
            net.kernel.lock = {
                rounds += 1
                if rounds < 3 { unlink(folder / ".a.reactor-lock") }
                return real($0)
            }
            let listener = try net.listen("unix:\(folder / "a")")
            expectEqual(rounds, 3)
            listener.close()
            // A process that always comes too late gives up.
            net.kernel.lock = {
                unlink(folder / ".a.reactor-lock")
                return real($0)
            }
            #expect(throws: SystemError(.bind, EADDRINUSE)) { try net.listen("unix:\(folder / "a")") }
        }
        expect(folder.names.isEmpty)
    }
}
