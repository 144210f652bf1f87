import XCTest

@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// A forked child has copies of all descriptors. A descriptor that it closes must stay open in the parent.
///
/// XCTest, which runs these on the main thread, one after the other: only the forking thread lives on in the child.
final class ForkedChildTests: XCTestCase {
    /// The ways in which a child closes a descriptor of the parent. The end of one side is refused.
    private enum Way: CaseIterable { case close, closeAtOnce, abort, shutDown, release, endOfLoop }

    /// Runs `body` and then everything that ends there in a forked child, and waits for the child.
    private func fork(_ body: () -> Void) -> Bool {
        let child = Glibc.fork()
        if child == 0 {
            alarm(20)
            body()
            return true
        }
        var status: CInt = 0
        XCTAssertEqual(waitpid(child, &status, 0), child)
        XCTAssertEqual(status, 42 << 8)
        return false
    }

    /// A loop that the child also leaves and then ends; returns the result of `body` in the parent.
    private func withLoop(_ body: (EventLoop) throws -> Bool) rethrows {
        if try EventLoop.withLoop(body) { _exit(42) }
    }

    /// In the child.
    private func expectRefusal(_ end: Promise<Void>) {
        if end.error as? SystemError != SystemError(.shutdown, EPERM) { _exit(1) }
        end.cauterize()
    }

    private func pair(isTCP: Bool) throws -> (Connection, Connection) {
        if !isTCP { return try Connection.pair() }
        let listener = try Listener.bind("127.0.0.1:0")
        let client = connect(to: listener.localAddress)
        let server = try hang(listener.accept(), timeout: patience)
        listener.close()
        return (try hang(client, timeout: patience), server)
    }

    func testConnectionsGoOnInTheParent() throws {
        for isTCP in [true, false] {
            for way in Way.allCases {
                try withLoop { _ in
                    let ends = try pair(isTCP: isTCP)
                    var near: Connection? = ends.0
                    let far = ends.1
                    // The child sends nothing that waits, and takes nothing that has arrived.
                    far.write("waiting").cauterize()
                    let isChild = fork {
                        switch way {
                        case .close: near!.close()
                        case .closeAtOnce: near!.close(linger: .zero)
                        case .abort: near!.abort()
                        case .shutDown: expectRefusal(near!.shutdownWrite())
                        case .release: near = nil
                        case .endOfLoop: break
                        }
                    }
                    if isChild { return true }
                    XCTAssertEqual(try hang(near!.receive(), timeout: patience), Array("waiting".utf8), "\(way)")
                    try hang(near!.write("still there"), timeout: patience)
                    XCTAssertEqual(try hang(far.receive(), timeout: patience), Array("still there".utf8), "\(way)")
                    try hang(far.write("both ways"), timeout: patience)
                    XCTAssertEqual(try hang(near!.receive(), timeout: patience), Array("both ways".utf8), "\(way)")
                    return false
                }
            }
        }
    }

    /// The parent sends bytes that wait for the kernel, once.
    func testQueuedBytesAreTheParentsToSend() throws {
        for way in Way.allCases {
            try withLoop { _ in
                let (near, far) = try Connection.pair()
                let bytes = pattern(1 << 20)
                var writing: Promise<Void>? = near.write(bytes)
                XCTAssertGreaterThan(near.queuedBytes, 0)
                let isChild = fork {
                    writing!.cauterize()
                    writing = nil
                    switch way {
                    case .close: near.close()
                    case .closeAtOnce: near.close(linger: .zero)
                    case .abort: near.abort()
                    case .shutDown: expectRefusal(near.shutdownWrite())
                    case .release, .endOfLoop: break
                    }
                }
                if isChild { return true }
                writing!.done { near.close() }.cauterize()
                XCTAssertEqual(try hang(readToEnd(far), timeout: patience), bytes, "\(way)")
                return false
            }
        }
    }

    /// A connection that is already closing keeps closing in the parent.
    func testOneThatLingersGoesOnInTheParent() throws {
        try withLoop { _ in
            let (near, far) = try pair(isTCP: true)
            let closed = near.close()
            let isChild = fork { near.close(linger: .zero) }
            if isChild { return true }
            XCTAssertEqual(try hang(far.receive(), timeout: patience), [])
            // No reset.
            try hang(far.write("late"), timeout: patience)
            far.close()
            hang(closed)
            return false
        }
    }

    func testAUnixListenerKeepsItsFileAndItsClients() throws {
        for way in Way.allCases {
            let folder = Folder()
            try withLoop { _ in
                var listener: Listener? = try Listener.bind("unix:\(folder / "a")")
                let early = try Peer(to: folder.address("a"))
                _ = listener!.serve { $0.write("hello") }
                let isChild = fork {
                    switch way {
                    case .close: listener!.close(drain: true)
                    case .closeAtOnce: listener!.close()
                    case .abort: _ = listener!.drain(deadline: .zero)
                    case .release: listener = nil
                    case .shutDown, .endOfLoop: break
                    }
                }
                if isChild { return true }
                XCTAssertEqual(folder.names, ["a"], "\(way)")
                let late = try Peer(to: folder.address("a"))
                for client in [early, late] {
                    let reply = elsewhere { try client.readToEnd() }
                    XCTAssertEqual(try hang(reply, timeout: patience), Array("hello".utf8), "\(way)")
                }
                listener!.close()
                XCTAssertEqual(folder.names, [], "\(way)")
                return false
            }
        }
    }

    /// Only the parent may kill the program that a child process runs.
    func testAProgramOfTheParentLives() throws {
        try withLoop { _ in
            let program = try ChildProcess.spawn("/bin/cat", standardInput: .pipe, standardOutput: .pipe)
            let end = program.waitOrKill()
            let isChild = fork {
                end.cancel()
                if (try? program.kill(SIGKILL)) != nil { _exit(1) }
            }
            if isChild { return true }
            try hang(program.standardInput!.write("alive\n"), timeout: patience)
            XCTAssertEqual(try hang(program.standardOutput!.receive(), timeout: patience), Array("alive\n".utf8))
            program.standardInput!.close()
            XCTAssertEqual(try hang(end, timeout: patience), .exited(0))
            return false
        }
    }

    /// A lookup that runs in the parent ends only there: the child must not wait for it.
    func testALookupOfTheParentIsNotJoined() throws {
        let (begun, gate) = (Gate(), Gate())
        let lookup = try SystemNameLookup(threads: 1) { _ throws(NameLookupError) in
            begun.open()
            gate.wait()
            return []
        }
        try withLoop { _ in
            let inParent = lookup.addresses(of: "a.example", port: 1)
            begun.wait()
            let isChild = fork {
                let inChild = lookup.addresses(of: "a.example", port: 1)
                if inChild.error as? DispatchError != .poolIsForked(name: "lookup") { _exit(1) }
                inParent.cancel()
            }
            if isChild { return true }
            gate.open()
            XCTAssertEqual(try hang(inParent, timeout: patience), [])
            return false
        }
    }
}
