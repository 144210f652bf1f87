import Glibc
import Reactor
import Testing

extension ProcessWide {
    /// Signals that interrupt whatever the loop's thread does.
    @Suite struct SignalStorm {
        @Test func aSignalEachMillisecondDisturbsNothing() throws {
            var action = sigaction()
            action.__sigaction_handler.sa_handler = { _ in }
            var found = sigaction()
            // Without SA_RESTART.
            sigaction(SIGALRM, &action, &found)
            var alarm = sigset_t()
            var mask = sigset_t()
            sigemptyset(&alarm)
            sigaddset(&alarm, SIGALRM)
            pthread_sigmask(SIG_UNBLOCK, &alarm, &mask)
            defer {
                pthread_sigmask(SIG_SETMASK, &mask, nil)
                sigaction(SIGALRM, &found, nil)
            }
            let target = Shared(pthread_self())
            let isOver = Shared(false)
            let storm = HelperThread {
                while !isOver.value {
                    pthread_kill(target.value, SIGALRM)
                    poll(nil, 0, 1)
                }
            }
            try EventLoop.withLoop { loop in
                let ends = Ends.sockets()
                var echoed = 0
                let watch = try loop.watch(ends.near, for: .reading) { _ in echoed += take(from: ends.near) }
                var sent = 0
                let sender = loop.schedule(every: .milliseconds(1)) {
                    put(into: ends.far)
                    sent += 1
                }
                let start = loop.now
                var fired: EventLoop.Instant?
                loop.schedule(after: .milliseconds(300)) {
                    fired = loop.now
                    sender.cancel()
                }
                try loop.drive { fired != nil && echoed == sent }
                let passed = start.duration(to: try #require(fired))
                #expect(passed >= .milliseconds(300))
                // It would be 20 ms beside nothing else; this machine has other things to do.
                #expect(passed < .milliseconds(800))
                #expect(sent > 30)
                watch.cancel()
            }
            isOver.value = true
            storm.join()
        }
    }
}
