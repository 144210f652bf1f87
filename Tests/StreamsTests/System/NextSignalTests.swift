@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// Signals as guarantees. No other test of this process uses SIGURG.
@Suite(.serialized) struct NextSignalTests {
    /// A loop on a thread that accepts signals: the threads of tests leave them to others.
    private func withLoop(_ body: (EventLoop) throws -> Void) rethrows {
        var all = sigset_t()
        var found = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_UNBLOCK, &all, &found)
        defer { pthread_sigmask(SIG_SETMASK, &found, nil) }
        try EventLoop.withLoop(body)
    }

    private func action() -> Int {
        var action = sigaction()
        sigaction(SIGURG, nil, &action)
        return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
    }

    @Test func theNextOneFulfillsAndTheActionIsPutBack() throws {
        try withLoop { loop in
            let before = action()
            let signal = try nextSignal(SIGURG)
            expect(action() != before)
            for _ in 0..<100 { raise(SIGURG) }
            expect(signal.isPending)
            hang(signal)
            expectEqual(action(), before)
            expect(!loop.isAlive)
        }
    }

    @Test func cancelledItWatchesNoMore() throws {
        try withLoop { loop in
            let before = action()
            let signal = try nextSignal(SIGURG)
            raise(SIGURG)
            signal.cancel()
            expectEqual(action(), before)
            try loop.run()
            expectEqual(loop.metrics.signalWatches, 0)
            expect(signal.asPromise(), failsWith: PromiseError.cancelled)
        }
    }

    @Test func theLoopsEndEndsIt() throws {
        let before = action()
        let tally = Tally()
        let lines = try logged {
            try withLoop { _ in
                let token = tally.token()
                try nextSignal(SIGURG).done { token.use() }
            }
        }
        expectEqual(action(), before)
        expectEqual(tally.alive, 0)
        expectEqual(lines, ["an event loop ended with 1 undelivered handler"])
    }
}
