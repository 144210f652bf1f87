@testable import PromisesTestSupport
@testable import ReactorIOTestSupport
@testable import echo_server

/// Any command line yields valid options, or one line about the error.
struct OptionsFuzzingTests {
    private static let corpus: [[String]] = [
        [], ["--help"], ["-h"], ["--version"], ["--quiet"], ["--listen", "127.0.0.1:7000"], ["--listen=[::1]:0"],
        ["--listen", "unix:/run/echo.sock", "--listen=unix:@echo"], ["--metrics", "localhost:9100"],
        ["--metrics=unix:/run/metrics.sock", "--quiet"], ["--max-connections", "10000"], ["--max-connections=1"],
        ["--idle-timeout", "250ms", "--drain-timeout=1.5s"], ["--stats", "2m"], ["--stats=0.25"],
        ["--idle-timeout", "0", "--drain-timeout", "31536000"], ["--threads", "0"], ["--threads=1024"],
    ]
    private static let pieces = [
        "-", "--", "=", ":", "::", "[", "]", "%", "@", ".", "/", " ", "\n", "\u{0}", "+", "e", "E", "ms", "s", "m",
        "unix:", "unix:@", "localhost", "0", "1", "99999999999999999999", "9223372036854775807", "1e308", "1e-400",
        "0x1p3", "nan", "inf", "-0", "٣", "²", "ü", "🙂", "\u{301}", "\u{202E}", "--listen", "--metrics", "--stats",
        "--max-connections", "--threads", "--idle-timeout", "--drain-timeout", "--quiet",
    ]

    @Test(arguments: 0..<8) func itParsesOrSaysWhyNot(seed: Int) {
        var dice = SplitMix64(UInt64(seed))
        var (served, refused) = (0, 0)
        for _ in 0..<2000 {
            let arguments = mutated(Self.corpus.randomElement(using: &dice)!, &dice)
            do throws(Options.UsageError) {
                guard case .serve(let options) = try Options.parse(arguments) else { continue }
                served += 1
                check(options, arguments)
            } catch {
                refused += 1
                expect(!error.description.isEmpty, "\(arguments)")
            }
        }
        expect(served > 100 && refused > 100, "the mutations leave too little to try")
    }

    private func check(_ options: Options, _ arguments: [String]) {
        expect(options.maxConnections > 0, "\(arguments)")
        expect(options.loops > 0 && options.loops <= 1024, "\(arguments)")
        let year = Duration.seconds(31_536_000)
        expect((.zero...year).contains(options.drainTimeout), "\(arguments)")
        for duration in [options.idleTimeout, options.statisticsInterval].compactMap(\.self) {
            expect(duration > .zero && duration <= year, "\(arguments)")
        }
        // Each address can be printed and given again, except one with a control character, which is printed escaped.
        let addresses = options.addresses + [options.metricsAddress].compactMap(\.self)
        if addresses.contains(where: { $0.description.contains("\\") }) { return }
        for address in addresses { expectEqual((try? SocketAddress(address.description)), address, "\(arguments)") }
        // The same options, however written.
        let again = addresses.dropLast(options.metricsAddress == nil ? 0 : 1).map { "--listen=\($0)" }
        guard case .serve(let parsed) = try? Options.parse(again) else {
            Issue.record("\(again) is refused")
            return
        }
        expectEqual(parsed.addresses, options.addresses)
    }

    /// Up to four changes: a piece inserted into an argument, a part of it removed or doubled, arguments added,
    /// removed, exchanged, or joined.
    private func mutated(_ arguments: [String], _ dice: inout SplitMix64) -> [String] {
        var arguments = arguments + (Bool.random(using: &dice) ? [] : Self.corpus.randomElement(using: &dice)!)
        for _ in 0..<Int.random(in: 0...4, using: &dice) {
            guard !arguments.isEmpty else {
                arguments.append(Self.pieces.randomElement(using: &dice)!)
                continue
            }
            let index = Int.random(in: 0..<arguments.count, using: &dice)
            switch Int.random(in: 0..<6, using: &dice) {
            case 0: arguments.remove(at: index)
            case 1: arguments.insert(Self.pieces.randomElement(using: &dice)!, at: index)
            case 2: arguments.swapAt(index, Int.random(in: 0..<arguments.count, using: &dice))
            case 3 where index + 1 < arguments.count: arguments[index] += arguments.remove(at: index + 1)
            default: arguments[index] = dice.mutated(arguments[index], inserting: Self.pieces)
            }
        }
        return arguments
    }
}
