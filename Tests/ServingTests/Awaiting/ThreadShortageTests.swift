@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// No thread can be started: what needs one is refused at once, or waits without holding its loop up.
struct ThreadShortageTests {
    // In a separate process: the limit concerns all threads.
    @Test(.ownThread, .disabled(if: isSanitized)) func theLoopRunsOn() async {
        await #expect(processExitsWith: .success) { try ThreadShortageTests.refuseWhatCanFail() }
        await #expect(processExitsWith: .success) { try ThreadShortageTests.delayWhatCannotFail() }
    }

    private static func refuseWhatCanFail() throws {
        forbidThreads()
        let needs: [(String, () throws -> Promise<Void>)] = [
            ("async body", { Promise { _ = await Stranger().visit() } }),
            ("async body, again", { Promise { _ = await Stranger().visit() } }),
            ("pool", { try Promise.value(1).map(on: ThreadPool()) { _ in } }),
            ("shared pool", { Promise.value(1).map(on: .shared) { _ in } }),
            ("file", { readFile("/etc/passwd").asVoid() }),
            ("name", { SystemNameLookup.shared.addresses(of: "a.invalid", port: 1).asVoid() }),
            ("child", { ChildProcess.run("/bin/true").asVoid() }),
            ("loop", { Promise.value(try EventLoop.spawn(name: "spawned")).asVoid() }),
            ("group", { Promise.value(try LoopGroup(loops: 2)).asVoid() }),
        ]
        for (name, begin) in needs {
            var fired = false
            let timer = after(.milliseconds(1)).done { fired = true }
            do {
                try hang(begin(), timeout: .seconds(10))
                Issue.record("\(name): no error")
            } catch { expectEqual((error as? SystemError)?.code, EAGAIN, "\(name): \(error)") }
            hang(timer)
            expect(fired)
        }
        try EventLoop.current.run()
    }

    private static func delayWhatCannotFail() throws {
        let recorder = LogRecorder(where: { $0.kind == .threadShortage })
        forbidThreads()
        var guarantees = [Guarantee { await Stranger().visit() }, Guarantee { await Stranger().visit() }]
        let stranger = Stranger()
        let task = Promise(on: .current) { await stranger.visit() }
        let ticks = (1...20).map { after(.milliseconds(10 * $0)) }
        try hang(when(fulfilled: ticks.map { $0.asPromise() }), timeout: .seconds(10))
        expect(guarantees.allSatisfy { $0.isPending } && task.isPending)
        expectEqual(recorder.count, 2, "one of each pool")
        let error = #expect(throws: SystemError.self) { try hang(Promise { 1 }) }
        expectEqual(error?.code, EAGAIN)
        allowThreads()
        guarantees.append(Guarantee { await Stranger().visit() })
        for guarantee in guarantees { expectEqual(try hang(guarantee, timeout: .seconds(10)), 1) }
        expectEqual(try hang(task, timeout: .seconds(10)), 1)
        expectEqual(try hang(Promise { 1 }), 1)
        try EventLoop.current.run()
    }

    /// The limit does not concern root.
    private static func forbidThreads() {
        alarm(60)
        if getuid() == 0 { setuid(65534) }
        setLimit(0)
    }

    private static func allowThreads() { setLimit(nil) }

    private static func setLimit(_ soft: rlim_t?) {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(__RLIMIT_NPROC.rawValue), &limit)
        limit.rlim_cur = soft ?? limit.rlim_max
        setrlimit(__rlimit_resource_t(__RLIMIT_NPROC.rawValue), &limit)
    }
}

/// An actor without its own executor.
private actor Stranger {
    private var visits = 0

    func visit() -> Int {
        visits += 1
        return visits
    }
}
