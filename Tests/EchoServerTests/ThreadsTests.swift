@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// `--threads`: connections served on several loops belong to one server.
struct ThreadsTests {
    @Test(arguments: [("1", 1), ("5", 5), ("0", LoopGroup.defaultLoops)])
    func onlySeveralNeedOneMore(threads: String, count: Int) throws {
        let server = try ServerProcess.serving("--threads", threads, "--metrics", "127.0.0.1:0")
        expect(try Peer(to: server.address).echoes("hello"))
        expectEqual(try server.exposition()["echo_threads"], Double(count))
        expectEqual(Folder.names(in: "/proc/\(server.pid)/task").count, count == 1 ? 1 : count + 1)
        try server.terminate()
    }

    @Test func eachServesItsShare() throws {
        let server = try ServerProcess.serving("--threads", "3", "--metrics", "127.0.0.1:0")
        let clients = try (0..<9).map { _ in try Peer(to: server.address) }
        for _ in 0..<10 { for client in clients { expect(try client.echoes("hello")) } }
        var after = try server.exposition()
        // The last echo may arrive before its loop waits for that connection again.
        func waiting(_ number: Int) -> Double? { after["echo_loop_descriptors{loop=\"echo-\(number)\"}"] }
        for _ in 0..<1000 where (1...3).contains(where: { waiting($0) != 3 }) { after = try server.exposition() }
        for number in 1...3 {
            expectEqual(after["echo_loop_system_calls_total{call=\"send\",loop=\"echo-\(number)\"}"], 30)
            expectEqual(waiting(number), 3)
        }
        expect(after["echo_loop_system_calls_total{call=\"accept4\",loop=\"main\"}"] ?? 0 >= 9)
        expect(after["echo_loop_waiting_seconds_total{loop=\"echo-1\"}"] != nil)
        expectEqual(after["echo_open_connections"], 9)
        expectEqual(after["echo_received_bytes_total"], 450)
        for client in clients { try client.leave() }
        expect(try server.terminate().hasPrefix("totals: 0 open, 9 connections (peak 9, 0 failed), 450 bytes, "))
    }

    @Test(.enabled(if: hasIPv6, "there is no IPv6 loopback address"))
    func socketsOfTheServiceManager() throws {
        let folder = Folder()
        let socket = try OwnSocket(SOCK_STREAM, .loopback(port: 0))
        let manager = try OwnSocket(SOCK_DGRAM, folder.address("notify"))
        let server = try ServerProcess.serving(
            "--threads", "2", "--listen", "[::1]:0", "--max-connections", "100",
            limits: """
                export LISTEN_PID=$$ LISTEN_FDS=1 NOTIFY_SOCKET=\(folder["notify"]) WATCHDOG_USEC=20000 WATCHDOG_PID=$$
                """, passing: socket.fd)
        expectEqual(manager.receive()?.hasPrefix("READY=1\n"), true)
        for _ in 0..<3 { expectEqual(manager.receive(), "WATCHDOG=1") }
        let clients = try server.addresses.flatMap { address in try (0..<2).map { _ in try Peer(to: address) } }
        for client in clients { expect(try client.echoes("hello")) }
        for client in clients { try client.leave() }
        expect(try server.terminate().contains(" 4 connections (peak 4, 0 failed), 20 bytes, "))
    }
}
