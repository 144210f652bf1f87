@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

struct RefusalTests {
    /// The output and exit code of a server that cannot start: one line, on standard error.
    private func refusal(
        _ arguments: [String], limits: String? = nil
    ) throws -> (line: String, exit: ServerProcess.Exit) {
        let server = try ServerProcess(arguments, limits: limits)
        let said = try server.readToEnd()
        expectEqual(said.output, "")
        expect(said.errors.hasPrefix("echo-server: ") && said.errors.hasSuffix("\n"))
        expectEqual(said.errors.filter { $0 == "\n" }.count, 1)
        return (String(said.errors.dropLast()), try server.waitForExit())
    }

    @Test func aBadOptionIsNamed() throws {
        let (line, exit) = try refusal(["--quiet", "--nonsense"])
        expectEqual(line, "echo-server: unknown option '--nonsense'; see echo-server --help")
        expectEqual(exit, .code(EX_USAGE))
    }

    /// Swift reads the command line there. Without it the server would listen at its default address, whatever its
    /// arguments.
    @Test(.enabled(if: system("unshare -m mount -t tmpfs none /proc 2>/dev/null") == 0, "mounting is not allowed"))
    func withoutProcItCannotReadItsOptions() throws {
        let hidden = "exec unshare -m sh -c 'mount -t tmpfs none /proc && exec \"$0\" \"$@\"' \"$0\" \"$@\""
        let (line, exit) = try refusal(["--listen", "127.0.0.1:0"], limits: hidden)
        expectEqual(line, "echo-server: the command line cannot be read: is /proc mounted?")
        expectEqual(exit, .code(EX_OSERR))
    }

    @Test(arguments: foreignAddresses) func anAddressThatIsNotThisMachines(address: String) throws {
        let (line, exit) = try refusal(["--listen", address])
        expectEqual(line, "echo-server: bind \(address): Cannot assign requested address (EADDRNOTAVAIL)")
        expectEqual(exit, .code(EX_UNAVAILABLE))
    }

    /// One client is the minimum: it takes standard streams, a listener, five descriptors of the main thread's loop,
    /// three of each further one, and the client's. With one more descriptor it is served.
    @Test(
        .disabled(if: isSanitized),
        arguments: [
            (4, 10, []), (8, 10, []), (9, 10, []), (15, 16, ["--threads", "2"]),
            (11, 12, ["--metrics", "127.0.0.1:0"]),
        ])
    func withoutDescriptorsForAClientItDoesNotBegin(limit: Int, needed: Int, options: [String]) throws {
        let server = try ServerProcess(["--listen", "127.0.0.1:0"] + options, limits: "ulimit -n \(limit)")
        let said = try server.readToEnd()
        expectEqual(said.output, "")
        #expect(
            said.errors == """
                echo-server: the limit of descriptors is \(limit) (RLIMIT_NOFILE, \(limit) at the start), \
                and serving one client takes \(needed)\n
                """)
        expectEqual(try server.waitForExit(), .code(EX_OSERR))
    }
}
