@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

struct PipeDescriptorTests {
    enum Signal: CaseIterable { case isNotBlocked, isBlocked, wasPendingBefore }

    /// SIGPIPE would end the process. If it is blocked, a raised one would show; one that was pending before stays.
    @Test(arguments: Signal.allCases) func aWriterWithoutAReaderFailsWithoutASignal(signal: Signal) throws {
        var set = sigset_t()
        var before = sigset_t()
        sigemptyset(&set)
        sigaddset(&set, SIGPIPE)
        pthread_sigmask(signal == .isNotBlocked ? SIG_UNBLOCK : SIG_BLOCK, &set, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        if signal == .wasPendingBefore { pthread_kill(pthread_self(), SIGPIPE) }
        try withNetwork { net in
            let (reader, writer) = try Connection.pipe()
            reader.abort()
            expectEqual(try rejection(of: writer.write("x")), EPIPE)
            expectEqual(writer.write("x").error as? SystemError, SystemError(.write, EPIPE))
        }
        if signal == .isNotBlocked { return }
        var now = timespec()
        if signal == .wasPendingBefore { expectEqual(sigtimedwait(&set, nil, &now), SIGPIPE) }
        expectEqual(sigtimedwait(&set, nil, &now), -1)
    }
}
