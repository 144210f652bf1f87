@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

struct OutputTests {
    @Test func theSignalPrintsStatisticsAndTheServerGoesOn() throws {
        let server = try ServerProcess.serving()
        let client = try Peer(to: server.address)
        expect(try client.echoes("12345"))
        for _ in 0..<3 {
            let line = try server.statistics()
            expect(line.hasPrefix("statistics: 1 open, 1 connections (peak 1, 0 failed), 5 bytes, "))
            expect(line.contains(" turns, longest turn ") && line.hasSuffix(" us"))
        }
        expect(try client.echoes("67890"))
        try client.leave()
        let totals = try server.terminate()
        expect(totals.hasPrefix("totals: 0 open, 1 connections (peak 1, 0 failed), 10 bytes, "))
        expectEqual(totals.filter { $0 == "\n" }.count, 1)
    }

    @Test func statisticsComeAsOftenAsAskedFor() throws {
        let server = try ServerProcess.serving("--stats", "10ms")
        for _ in 0..<3 { expect(try server.readLine().hasPrefix("statistics: 0 open, 0 connections ")) }
        expectEqual(try server.terminate().split(separator: "\n").last?.hasPrefix("totals: "), true)
    }

    @Test func quietSaysWhereItListensAndNothingElse() throws {
        let server = try ServerProcess.serving("--quiet", "--stats", "1ms")
        let client = try Peer(to: server.address)
        for number in 0..<20 {
            server.signal(SIGUSR1)
            expect(try client.echoes("message \(number)"))
        }
        try client.leave()
        expectEqual(try server.terminate(), "")
    }

    /// Otherwise the listener would become standard input, and a client standard error.
    @Test func standardStreamsThatAreClosedAreNobodyElses() throws {
        let server = try ServerProcess.serving(limits: "exec 0<&- 2>&-")
        expect(try Peer(to: server.address).echoes("hello"))
        for stream in [0, 2] {
            var target = [CChar](repeating: 0, count: 64)
            let count = readlink("/proc/\(server.pid)/fd/\(stream)", &target, target.count)
            let name = String(decoding: target[..<max(count, 0)].map(UInt8.init(bitPattern:)), as: UTF8.self)
            expectEqual(name, "/dev/null")
        }
        try server.terminate()
    }

    @Test func itContinuesWithoutAReaderOfItsLines() throws {
        let server = try ServerProcess.serving("--stats", "1ms")
        let client = try Peer(to: server.address)
        server.stopListening()
        for number in 0..<200 {
            server.signal(SIGUSR1)
            expect(try client.echoes("message \(number)"))
        }
        try client.leave()
        try server.terminate()
    }

    @Test func aReaderThatStopsReadingItsLinesHoldsNothingUp() throws {
        let server = try ServerProcess.serving("--stats", "0.01ms")
        let client = try Peer(to: server.address)
        // Until the pipe to the test is full.
        var (unread, unchanged) = (0, 0)
        for _ in 0..<100_000 where unchanged < 100 {
            expect(try client.echoes("hello"))
            let count = server.unreadBytes
            unchanged = count > 1000 && count == unread ? unchanged + 1 : 0
            unread = count
        }
        expectEqual(unchanged, 100)
        try client.leave()
        try server.terminate()
    }

    @Test(arguments: [
        ("--help", "usage: echo-server [--listen ADDRESS]... [options]\n"), ("--version", "echo-server 0.1.0\n"),
    ])
    func helpAndVersion(option: String, begin: String) throws {
        let server = try ServerProcess([option])
        let said = try server.readToEnd()
        expect(said.output.hasPrefix(begin) && said.errors == "")
        expectEqual(try server.waitForExit(), .code(0))
    }
}
