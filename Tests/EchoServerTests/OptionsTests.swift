@testable import PromisesTestSupport
@testable import ReactorIOTestSupport
@testable import echo_server

struct OptionsTests {
    private func options(_ arguments: String...) throws -> Options {
        guard case .serve(let options) = try Options.parse(arguments) else {
            throw Options.UsageError(description: "this does not serve")
        }
        return options
    }

    private func complaint(_ arguments: [String]) -> String? {
        do {
            _ = try Options.parse(arguments)
            return nil
        } catch { return error.description }
    }

    /// Expects the complaint about `text` as the next argument, and after an equals sign.
    private func expectComplaint(_ expected: String, about option: String, _ text: String) {
        expectEqual(complaint([option, text]), expected)
        expectEqual(complaint(["\(option)=\(text)"]), expected)
    }

    @Test func withoutArgumentsTheDefaultsHold() throws {
        let expected = Options()
        expectEqual(try options(), expected)
        // The address depends on what the service manager passes.
        expectEqual(expected.addresses, [])
        expectEqual(Options.defaultAddress, .loopback(port: 7000))
        expectEqual(expected.metricsAddress, nil)
        expectEqual(expected.maxConnections, 10_000)
        expect(expected.threads == 1 && expected.loops == 1)
        expectEqual(expected.idleTimeout, nil)
        expectEqual(expected.drainTimeout, .seconds(5))
        expectEqual(expected.statisticsInterval, nil)
        expect(!expected.isQuiet)
    }

    @Test func everyOptionTakesItsValueAsTheNextArgumentOrAfterAnEqualsSign() throws {
        let values = [
            "--listen": "127.0.0.1:1", "--max-connections": "7", "--threads": "3", "--idle-timeout": "250ms",
            "--drain-timeout": "1.5s", "--stats": "2m", "--metrics": "127.0.0.1:9",
        ]
        for arguments in [values.flatMap { [$0, $1] }, values.map { "\($0)=\($1)" }] {
            expectEqual(try Options.parse(arguments + ["--quiet"]), .serve(all))
        }
    }

    private var all: Options {
        var options = Options()
        options.addresses = [.loopback(port: 1)]
        options.maxConnections = 7
        options.threads = 3
        options.idleTimeout = .milliseconds(250)
        options.drainTimeout = .milliseconds(1500)
        options.statisticsInterval = .seconds(120)
        options.metricsAddress = .loopback(port: 9)
        options.isQuiet = true
        return options
    }

    @Test func listenMayBeRepeatedAndKeepsItsOrder() throws {
        let parsed = try options("--listen", "[::1]:7001", "--listen=localhost:7002", "--listen", "0.0.0.0:0")
        expectEqual(parsed.addresses.map(\.description), ["[::1]:7001", "127.0.0.1:7002", "0.0.0.0:0"])
        let unix = try options("--listen", "unix:/run/a=b.sock", "--listen=unix:@a=b", "--metrics=unix:relative")
        expectEqual(unix.addresses.map(\.description), ["unix:/run/a=b.sock", "unix:@a=b"])
        expectEqual(unix.addresses.map(\.unixPath), ["/run/a=b.sock", nil])
        expectEqual(unix.metricsAddress?.unixPath, "relative")
    }

    @Test func theLastOfOtherOptionsCounts() throws {
        expectEqual(try options("--max-connections", "1", "--max-connections=2").maxConnections, 2)
        expectEqual(try options("--metrics", "[::]:1", "--metrics", "[::]:2").metricsAddress?.port, 2)
    }

    @Test func aTime() throws {
        for (text, expected) in [
            ("250ms", Duration.milliseconds(250)), ("1.5s", .milliseconds(1500)), ("2m", .seconds(120)),
            ("3", .seconds(3)), ("0.25", .milliseconds(250)), ("1ms", .milliseconds(1)),
            ("31536000", .seconds(31_536_000)),
        ] { expectEqual(try options("--drain-timeout", text).drainTimeout, expected) }
        // Zero is no idle timeout, and no drain.
        for text in ["0", "0s", "0ms", "0.0"] {
            expectEqual(try options("--idle-timeout", "5", "--idle-timeout", text).idleTimeout, nil)
            expectEqual(try options("--drain-timeout", text).drainTimeout, .zero)
        }
    }

    @Test(arguments: ["--idle-timeout", "--drain-timeout", "--stats"]) func whatIsNoTimeOrLongerThanAYear(
        option: String
    ) {
        for text in ["", "s", "ms", "-1", "+1", "1h", "1 s", "abc", "nan", "inf", "1e400", "1s2", ".5", "1,5", "٣"] {
            let expected = "\(option): '\(text)' is not a duration; write 250ms, 1.5s, 2m or a number of seconds"
            expectComplaint(expected, about: option, text)
        }
        for text in ["31536001", "400000000", "525600.1m", "31536000001ms", String(repeating: "9", count: 400)] {
            let expected = "\(option): '\(text)' is too long; the most is a year, 31536000 seconds"
            expectComplaint(expected, about: option, text)
        }
        expectEqual(complaint(["--stats", "0"]), "--stats must be more than 0")
    }

    @Test func whatIsNoCount() {
        for text in ["", "0", "-1", "1.5", "many", "9223372036854775808", " 1"] {
            expectEqual(complaint(["--max-connections", text]), "--max-connections: '\(text)' is not a number above 0")
        }
        for text in ["", "-1", "+1", "1025", "1.5", "many", "9223372036854775808", " 1", "0x1"] {
            expectComplaint("--threads: '\(text)' is not a number from 0 to 1024", about: "--threads", text)
        }
    }

    @Test func aNumberOfThreads() throws {
        for (text, loops) in [("0", LoopGroup.defaultLoops), ("1", 1), ("2", 2), ("1024", 1024)] {
            let parsed = try options("--threads", text)
            expect(parsed.threads == Int(text) && parsed.loops == loops, text)
        }
    }

    @Test(arguments: ["--listen", "--metrics"]) func whatIsNoAddress(option: String) {
        for text in ["7000", ""] {
            let reason = "'\(text)' is not an address: the port is missing; write HOST:PORT"
            expectComplaint("\(option): \(reason)", about: option, text)
        }
    }

    /// The options that take a value.
    private let taking = [
        "--listen", "--max-connections", "--threads", "--idle-timeout", "--drain-timeout", "--stats", "--metrics",
    ]

    @Test func whatIsUnknownOrHasTooFewValuesOrTooMany() {
        let unknown = ["--nonsense", "--nonsense=1", "-x", "7000", "", "--Listen", "--", "="]
        for (arguments, text) in taking.map({ ($0, "\($0) needs a value") })
            + unknown.map({ ($0, "unknown option '\($0)'") })
        {
            expectEqual(complaint([arguments]), text)
            expectEqual(complaint(["--quiet", arguments]), text)
        }
        for option in ["--quiet", "--help", "-h", "--version"] {
            for value in ["1", "", "yes", "=", "a=b"] {
                expectEqual(complaint(["\(option)=\(value)"]), "\(option) takes no value")
                expectEqual(complaint(["--quiet", "\(option)=\(value)", "--help"]), "\(option) takes no value")
            }
        }
    }

    @Test func helpAndVersion() throws {
        expectEqual(try Options.parse(["--help"]), .help)
        expectEqual(try Options.parse(["-h"]), .help)
        expectEqual(try Options.parse(["--quiet", "--help", "--nonsense"]), .help)
        expectEqual(try Options.parse(["--version"]), .version)
        for text in taking + ["--quiet", "--help", "--version", "unix:/PATH", "unix:@NAME"] {
            expect(Options.help.contains(text), text)
        }
        expect(Options.help.split(separator: "\n").allSatisfy { $0.count <= 100 })
    }
}
