@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

struct MetricsTests {
    private let get = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n"

    private func server() throws -> (ServerProcess, SocketAddress) {
        let server = try ServerProcess.serving("--metrics", "127.0.0.1:0", "--drain-timeout", "1m")
        return (server, try #require(server.metricsAddress))
    }

    @Test func theyFollowWhatHappens() throws {
        let (server, _) = try server()
        let before = try server.exposition()
        expectEqual(before["echo_info{version=\"0.1.0\"}"], 1)
        let limit = ServerProcess.mayHaveDescriptorsForDefaults ? 10_000 : 100
        expectEqual(before["echo_connections_limit"], Double(limit))
        // The times of turns, which the server measures, but not those of handlers, which it does not.
        for name in ["waiting_seconds_total", "longest_turn_seconds"] { expect(before["echo_loop_\(name)"] != nil) }
        for name in ["longest_handler_seconds", "slow_handlers_total"] {
            expectEqual(before["echo_loop_\(name)"], nil)
        }
        for name in ["open_connections", "connections_total", "received_bytes_total", "draining"] {
            expectEqual(before["echo_\(name)"], 0)
        }
        let clients = try (0..<3).map { _ in try Peer(to: server.address) }
        for client in clients { expect(try client.echoes("hello")) }
        clients[0].end()
        expectEqual(try clients[0].receive(), [])
        let after = try server.exposition()
        expectEqual(after["echo_open_connections"], 2)
        expectEqual(after["echo_open_connections_peak"], 3)
        expectEqual(after["echo_connections_total"], 3)
        expectEqual(after["echo_failed_connections_total"], 0)
        expectEqual(after["echo_received_bytes_total"], 15)
        expect(after["echo_loop_system_calls_total{call=\"send\"}"] ?? 0 >= 3)
        for (name, value) in before.samples where before.types[name] == "counter" {
            expect(after[name] ?? -1 >= value, "\(name) goes back")
        }
        for client in clients { client.end() }
        // Neither the scrapes nor their connections are counted as the server's.
        for client in clients[1...] { expectEqual(try client.receive(), []) }
        expect(try server.terminate().hasPrefix("totals: 0 open, 3 connections (peak 3, 0 failed), 15 bytes, "))
    }

    /// The server in its usual form: the cost of a message at depth one, with an idle time-out.
    @Test func aMessageCostsThreeSystemCalls() throws {
        let server = try ServerProcess.serving("--metrics", "127.0.0.1:0", "--idle-timeout", "1m")
        let client = try Peer(to: server.address)
        expect(try client.echoes("the first"))
        let before = try server.exposition()
        for _ in 0..<1000 { expect(try client.echoes("x")) }
        let after = try server.exposition()
        func more(_ call: String) -> Double {
            let name = "echo_loop_system_calls_total{call=\"\(call)\"}"
            return (after[name] ?? 0) - (before[name] ?? 0)
        }
        let calls = after.samples.keys.filter { $0.hasPrefix("echo_loop_system_calls_total") }
        let all = calls.reduce(0.0) { $0 + (after[$1] ?? 0) - (before[$1] ?? 0) }
        expect(all <= 3200)
        // The calls of the second scrape.
        expect(more("epoll_ctl") <= 6 && more("timerfd_settime") <= 4)
        try client.leave()
        try server.terminate()
    }

    @Test func anAnswerSaysWhatItIs() throws {
        let (server, address) = try server()
        let answer = try Answer.to(get, at: Peer(to: address))
        expectEqual(answer.fields["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
        expectEqual(answer.fields["Content-Length"], "\(answer.body.utf8.count)")
        expectEqual(answer.fields["Connection"], "close")
        // A newline alone ends a line.
        for other in [
            "GET /metrics?name=x HTTP/1.0\r\n\r\n", "GET /metrics HTTP/1.1\n\n", "GET /metrics HTTP/1.1\r\n\n",
            "GET /metrics HTTP/1.1\n\r\n", "GET /metrics HTTP/1.1\nHost: localhost\r\nAccept: */*\n\n",
        ] { expectEqual(try Answer.to(other, at: Peer(to: address)).status, "200 OK", other) }
        let head = try Answer.to("HEAD /metrics HTTP/1.1\r\n\r\n", at: Peer(to: address))
        expect(head.status == "200 OK" && head.body == "")
        expect(Int(head.fields["Content-Length"] ?? "") ?? 0 > 1000)
        expectEqual(try Answer.to("HEAD / HTTP/1.1\r\n\r\n", at: Peer(to: address)).body, "")
        try server.terminate()
    }

    @Test func whatElseIsAskedDoesNoHarm() throws {
        let (server, address) = try server()
        for (request, status) in [
            ("GET / HTTP/1.1\r\n\r\n", "404 Not Found"), ("GET /metrics/ HTTP/1.1\r\n\r\n", "404 Not Found"),
            ("GET /metricsx HTTP/1.1\r\n\r\n", "404 Not Found"), ("POST / HTTP/1.1\r\n\r\n", "404 Not Found"),
            ("POST /metrics HTTP/1.1\r\n\r\n", "405 Method Not Allowed"),
            ("get /metrics HTTP/1.1\r\n\r\n", "405 Method Not Allowed"),
            ("GET /metrics\r\n\r\n", "400 Bad Request"), ("GET /metrics HTTP/2.0\r\n\r\n", "400 Bad Request"),
            ("GET  /metrics HTTP/1.1\r\n\r\n", "400 Bad Request"), ("\r\n\r\n", "400 Bad Request"),
            ("\u{0}\u{1}\u{7F} \u{301} \u{FFFD}\r\n\r\n", "400 Bad Request"),
        ] {
            let answer = try Answer.to(request, at: Peer(to: address))
            expect(answer.status == status && answer.body == "\(status)\n", request)
            expectEqual(answer.fields["Allow"], status.hasPrefix("405") ? "GET, HEAD" : nil, request)
        }
        let long = try Peer(to: address)
        try long.send(Array("GET /metrics HTTP/1.1\r\n".utf8) + [UInt8](repeating: 0x61, count: 8192))
        expectEqual(try Answer(long.readToEnd()).status, "431 Request Header Fields Too Large")
        let silent = try Peer(to: address)
        try silent.leave()
        let half = try Peer(to: address)
        try half.send(Array("GET /metr".utf8))
        try half.leave()
        let gone = try Peer(to: address)
        try gone.send(randomBytes(500))
        gone.reset()
        expectEqual(try server.exposition()["echo_failed_connections_total"], 0)
        expect(try Peer(to: server.address).echoes("hello"))
        try server.terminate()
    }
}
