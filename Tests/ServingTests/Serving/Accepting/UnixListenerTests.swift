@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// Listeners at paths and abstract names, and the files that they create.
struct UnixListenerTests {
    /// A client usually has no name; only the listener knows the kind of the connection.
    @Test(.network) func itsConnectionsAreNotTakenForTCP() throws {
        let folder = Folder()
        let address = try SocketAddress(abstract: "reactor-test-\(getpid())-\(UInt64.random(in: 0 ... .max))")
        let listener = try Listener.bind([folder.address("a"), address, .loopback(port: 0)])
        #expect(throws: SystemError(.bind, EADDRINUSE)) { try Listener.bind(address) }
        for (local, expected) in zip(listener.localAddresses, [0, 0, 1]) {
            let client = try Peer(to: local)
            let calls = net.calls(.setSocketOption)
            let server = try net.accept(from: listener)
            expectEqual(net.calls(.setSocketOption) - calls, expected, "\(local)")
            expectEqual((server.peerAddress == nil), (expected == 0))
            client.close()
        }
    }

    @Test(arguments: [false, true]) func whatADeadProcessLeftIsReplaced(isThere: Bool) throws {
        let folder = Folder()
        if isThere { folder.leaveStaleSocket("a") }
        try withNetwork { net in
            let listener = try net.listen("unix:\(folder / "a")")
            expectEqual(listener.localAddress, folder.address("a"))
            let client = try hang(connect(to: folder.address("a")), timeout: patience)
            expectEqual(client.peerAddress, folder.address("a"))
            let server = try net.accept(from: listener)
            client.close()
            hang(server.close())
            listener.close()
            expect(folder.names.isEmpty)
        }
    }

    @Test(.network, arguments: [4096, 0]) func whereASocketListensNothingIsTouched(backlog: Int) throws {
        let folder = Folder()
        let first = try net.listen("unix:\(folder / "a")", backlog: backlog)
        // With a backlog of 0 this fills it, and the probe fails with EAGAIN.
        let filler = try Peer(to: first.localAddress)
        let before = folder.status("a")
        let error = #expect(throws: SystemError.self) { try Listener.bind(first.localAddress) }
        expectEqual(error, SystemError(.bind, EADDRINUSE))
        expectEqual(error?.detail, "\(first.localAddress)")
        expectEqual(folder.status("a")?.st_ino, before?.st_ino)
        let accepted = try net.accept(from: first)
        filler.close()
        hang(accepted.close())
        // The probe, if admitted, has ended.
        first.close()
    }

    @Test func aFileThatIsNoSocketIsNeverRemoved() throws {
        let folder = Folder()
        close(creat(folder / "file", 0o600))
        symlink("/nowhere", folder / "link")
        try withNetwork { net in
            let real = net.kernel.unlink
            var removed: [String] = []
            net.kernel.unlink = {
                removed.append($0)
                return real($0)
            }
            for name in ["file", "link"] {
                let error = #expect(throws: SystemError.self) { try net.listen("unix:\(folder / name)") }
                expectEqual(error, SystemError(.bind, EADDRINUSE))
            }
            expectEqual(removed, [folder / ".file.reactor-lock", folder / ".link.reactor-lock"])
        }
        expectEqual(folder.names, ["file", "link"])
    }

    @Test func aSocketThatWasReplacedWhileItWasAskedIsKept() throws {
        let folder = Folder()
        folder.leaveStaleSocket("a")
        try withNetwork { net in
            let real = net.kernel.startConnect
            net.kernel.startConnect = {
                let answer = real($0, $1, $2)
                // Its number stays taken, so that the next file cannot have it.
                rename(folder / "a", folder / "old")
                folder.leaveStaleSocket("a")
                return answer
            }
            #expect(throws: SystemError(.bind, EADDRINUSE)) { try net.listen("unix:\(folder / "a")") }
        }
        expectEqual(folder.names, ["a", "old"])
    }

    @Test func aFileOfAnotherIsNotRemovedAtTheEnd() throws {
        let folder = Folder()
        try withNetwork { net in
            let listener = try net.listen("unix:\(folder / "a")")
            rename(folder / "a", folder / "old")
            folder.leaveStaleSocket("a")
            listener.close()
        }
        expectEqual(folder.names, ["a", "old"])
    }

    @Test(.network, arguments: [0o600, 0o666, 0o777] as [UInt32]) func theModeIsThatOfTheFile(mode: UInt32) throws {
        let folder = Folder()
        let real = net.kernel.listen
        var modeAtListen: UInt32?
        net.kernel.listen = {
            modeAtListen = folder.status("a").map { $0.st_mode & 0o7777 }
            return real($0, $1)
        }
        let listener = try Listener.bind("unix:\(folder / "a")", mode: mode)
        expectEqual(modeAtListen, mode)
        listener.close()
    }

    @Test(.network) func aModeIsForPathsOnly() throws {
        for address in ["127.0.0.1:0", "unix:@reactor-mode"] {
            let error = #expect(throws: SystemError.self) { try Listener.bind(address, mode: 0o600) }
            expectEqual(error, SystemError(.changeMode, EINVAL))
            expectEqual(error?.detail?.contains(address), true)
        }
        let folder = Folder()
        #expect(throws: SystemError(.changeMode, EINVAL)) {
            try Listener.bind("unix:\(folder / "a")", mode: 0o10000)
        }
        expectEqual(net.calls(.socket), 0)
    }

    @Test func everyStepThatFailsLeavesNothing() throws {
        let folder = Folder()
        let refuse: [(inout Syscalls) -> Void] = [
            { $0.changeMode = { _, _ in -Int(EPERM) } }, { $0.listen = { _, _ in -Int(ENOBUFS) } },
        ]
        for refuse in refuse {
            try withNetwork { net in
                refuse(&net.kernel)
                #expect(throws: SystemError.self) { try Listener.bind("unix:\(folder / "a")", mode: 0o600) }
                expect(net.ledger.open.isEmpty && folder.names.isEmpty)
            }
        }
    }

    @Test(.network) func aFolderThatIsNotThere() throws {
        #expect(throws: SystemError(.bind, ENOENT)) { try net.listen("unix:/nowhere/at/all") }
    }
}
