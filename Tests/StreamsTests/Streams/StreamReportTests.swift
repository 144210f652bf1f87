@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

private func at(_ line: UInt) -> String { "\(#fileID):\(line)" }

/// Reports and traces of the library that name a stream or a call of one.
struct StreamReportTests {
    @Test(.network) func listenersConnectionsAndChildrenHaveNames() throws {
        let listener = try net.listen()
        let accepting = listener.accept()
        let (first, second) = try Connection.pair()
        let reading = first.read()
        let child = try ChildProcess.spawn("/bin/sleep", arguments: ["1000"])
        let reasons = net.loop.keepAliveReport
        let users = Set(reasons.descriptors.map(\.user))
        expectEqual("\(listener)", "Listener(\(listener.localAddress))")
        expectEqual(users, ["Listener(\(listener.localAddress))", "\(first)", "\(child)"])
        expectEqual(reasons.descriptors.count, 3)
        expectEqual("\(child)", "child \(child.processID) (/bin/sleep)")

        accepting.cancel()
        listener.close()
        reading.cancel()
        second.close()
        first.close()
        try child.kill(SIGKILL)
        try net.loop.run()
        expect(net.loop.keepAliveReport.isEmpty)
    }

    /// A call inside the library has only its own line to report, which would mislead.
    @Test func aRefusedCallOfAConnectionNamesTheCallAndNoLine() throws {
        let lines = try loggedInLoop { _ in
            let (here, there) = try Connection.pair()
            here.close()
            there.close()
            _ = here.write("x")
            _ = here.shutdownWrite()
        }
        let details = ["send", "shutdown"].map { "unhandled rejection: \($0)" }
        expect(lines.count == 2 && zip(lines, details).allSatisfy { $0.hasPrefix($1) }, "\(lines)")
        expect(lines.allSatisfy { !$0.contains("promise made at") })
    }

    /// In its own process, since tracing is process-wide.
    @Test(.ownThread) func calls() async { await #expect(processExitsWith: .success) { try Bodies.connections() } }
}

private enum Bodies {
    static func connections() throws {
        conf.trace = true
        try EventLoop.withLoop { _ throws in
            let nowhere = connect(to: "nowhere")
            expect(String(reflecting: nowhere).contains("(connect at \(at(#line - 1))"))
            nowhere.ignoringErrors()
            let listener = try Listener.bind("127.0.0.1:0")
            let line: UInt = #line
            let accepted = listener.accept()
            let connected = connect(to: listener.localAddress)
            let (client, server) = try hang(when(fulfilled: connected, accepted))
            let served = listener.serve { _ in Promise<Void>.value }
            let read = client.read()
            let received = server.receive()
            let written = client.write([UInt8](repeating: 0, count: 1 << 24))
            let ended = client.shutdownWrite()
            let closed = client.close()
            let texts = [
                String(reflecting: accepted), String(reflecting: connected), String(reflecting: served),
                String(reflecting: read), String(reflecting: received), String(reflecting: written),
                String(reflecting: ended), String(reflecting: closed),
            ]
            let names = [
                ("accept", 1), ("connect", 2), ("serve", 4), ("read", 5), ("receive", 6), ("write", 7),
                ("shutdownWrite", 8), ("close", 9),
            ]
            for (text, (name, offset)) in zip(texts, names) {
                expect(text.hasSuffix("(\(name) at \(at(line + UInt(offset))))"))
            }
            for promise in [received.asVoid(), written, ended, served.asVoid()] { promise.ignoringErrors() }
            listener.close()
            client.abort()
            server.abort()
        }
    }
}
