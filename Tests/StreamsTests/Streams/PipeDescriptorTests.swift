@testable import PromisesTestSupport

struct PipeDescriptorTests {
    /// Its number may belong to another file by then.
    @Test(.network) func aWriterThatHasEndedHasNoOptions() throws {
        let (_, writer) = try Connection.pipe()
        try hang(writer.shutdownWrite(), timeout: patience)
        #expect(throws: SystemError(.setSocketOption, EBADF)) { try writer.set(.receiveBuffer, to: 10_000) }
        #expect(throws: SystemError(.getSocketOption, EBADF)) { try writer.value(of: .receiveBuffer) }
    }

    /// If the signal is blocked, a raised one would show; if not, it would end the process.
    @Test(arguments: [false, true]) func aWriterWithoutAReaderFailsWithoutASignal(isBlocked: Bool) throws {
        var set = sigset_t()
        var before = sigset_t()
        sigemptyset(&set)
        if isBlocked { sigaddset(&set, SIGPIPE) }
        pthread_sigmask(SIG_BLOCK, &set, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        try withNetwork { net in
            let (reader, writer) = try Connection.pipe()
            reader.abort()
            expectEqual(try rejection(of: writer.write("x")), EPIPE)
            expectEqual(code(writer.write("x")), EPIPE)
            expect(writer.failureIsOf(.write))
            var pending = sigset_t()
            sigpending(&pending)
            expectEqual(sigismember(&pending, SIGPIPE), 0)
        }
    }

    @Test func aSignalThatWasPendingBeforeStays() throws {
        var set = sigset_t()
        var before = sigset_t()
        sigemptyset(&set)
        sigaddset(&set, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &set, &before)
        pthread_kill(pthread_self(), SIGPIPE)
        try withNetwork { net in
            let (reader, writer) = try Connection.pipe()
            reader.abort()
            expectEqual(try rejection(of: writer.write("x")), EPIPE)
        }
        var now = timespec()
        expectEqual(sigtimedwait(&set, nil, &now), SIGPIPE, "the signal that was pending has gone")
        expectEqual(sigtimedwait(&set, nil, &now), -1)
        pthread_sigmask(SIG_SETMASK, &before, nil)
    }
}

extension Connection {
    /// True if the error of its writes names this call.
    fileprivate func failureIsOf(_ call: SystemCall) -> Bool {
        (write("x").error as? SystemError)?.call == call
    }
}
