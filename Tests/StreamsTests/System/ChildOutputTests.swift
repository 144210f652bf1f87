@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

struct ChildOutputTests {
    @Test(.network) func bothStreamsAndTheCode() throws {
        let output = try hang(ChildProcess.run("sh", ["-c", "echo out; echo err >&2; exit 3"]))
        expectEqual(output.text, "out\n")
        expectEqual(output.standardError, Array("err\n".utf8))
        expectEqual(output.status, .exited(3))
        expect(!output.status.isSuccess)
    }

    /// Whether or not the program reads it.
    @Test(.network(turns: 4000), arguments: ["cat", "true"]) func aLargeInputGoesThrough(program: String) throws {
        let bytes = pattern(2_000_000)
        let output = try hang(ChildProcess.run(program, input: bytes))
        expectEqual(output.standardOutput, program == "cat" ? bytes : [])
        expect(output.status.isSuccess)
    }

    @Test(.network) func moreThanTheLimitKillsIt() throws {
        expect(ChildProcess.run("yes", limit: 100_000), failsWith: SystemError(.read, EFBIG))
        try net.loop.run()
        expect(!net.loop.isAlive)
    }

    @Test(.network, arguments: [false, true]) func cancelledOrTimedOutItIsKilled(isCancelled: Bool) throws {
        let run = ChildProcess.run("sleep", ["1000"], timeout: isCancelled ? nil : .milliseconds(1))
        net.settle(.milliseconds(1))
        if isCancelled { run.cancel() }
        expect(run, failsWith: isCancelled ? PromiseError.cancelled : .timedOut)
        try net.loop.run()
        expect(!net.loop.isAlive)
    }

    /// It has ended itself, but its output has not.
    @Test func cancelledItsGroupIsKilled() throws {
        let folder = Folder()
        let path = folder["fifo"]
        expectEqual(mkfifo(path, 0o600), 0)
        let fifo = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        defer { close(fifo) }
        try withNetwork { network in
            let run = ChildProcess.run("sh", ["-c", "exec 3>\(path); sleep 20 & echo gone"], ownGroup: true)
            try network.loop.run(until: { network.calls(.waitid) == 1 })
            run.cancel()
            expect(run, failsWith: PromiseError.cancelled)
            // The kernel reports the end of the only writer.
            awaitArrival(of: POLLHUP, at: fifo)
            try network.loop.run()
            expect(!network.loop.isAlive)
        }
    }

    @Test(.network) func whatCannotBeStartedIsARejection() throws {
        expect(ChildProcess.run("no-such-program"), failsWith: SystemError(.spawn, ENOENT))
        expect(ChildProcess.run(""), failsWith: SystemError(.spawn, EINVAL))
        let output = try hang(ChildProcess.run("pwd", environment: ["A": "B"], workingDirectory: "/usr"))
        expectEqual(output.text, "/usr\n")
    }
}
