import CLinux
import Glibc
import Reactor
import Testing

extension ProcessWide {
    /// How a loop learns that a child has ended, by each of the ways there are.
    @Suite struct ChildrenEnd {
        enum Way: CaseIterable { case pidfd, oldPidfd, signal, forbidden }

        private func withLoop(_ way: Way, _ body: (EventLoop) throws -> Void) throws {
            // The way by SIGCHLD needs a thread that takes signals.
            var all = sigset_t()
            var found = sigset_t()
            sigfillset(&all)
            pthread_sigmask(SIG_UNBLOCK, &all, &found)
            defer { pthread_sigmask(SIG_SETMASK, &found, nil) }
            var calls = Syscalls()
            let real = calls
            switch way {
            case .pidfd: break
            case .oldPidfd:
                calls.wait = { $0 ? -Int(EINVAL) : real.wait($0, $1, &$2, &$3) }
            case .signal: calls.pidfdOpen = { _ in -Int(ENOSYS) }
            case .forbidden: calls.pidfdOpen = { _ in -Int(EPERM) }
            }
            try EventLoop.withLoop(syscalls: calls, body)
        }

        @Test(arguments: Way.allCases) func theCodeOrTheSignalIsToldOnce(way: Way) throws {
            try withLoop(way) { loop in
                let exits = try Offspring(loop, shell("exit 7"))
                let dies = try Offspring(loop, shell("kill -TERM $$"))
                let succeeds = try Offspring(loop, ChildPlan("/bin/true"))
                #expect(loop.isAlive)
                try loop.run()
                #expect(exits.reports == [.exited(7)])
                #expect(dies.reports == [.signaled(SIGTERM)])
                #expect(succeeds.reports == [.exited(0)])
                for offspring in [exits, dies, succeeds] {
                    #expect(!isUnreaped(offspring.child.process))
                    #expect(offspring.child.status == offspring.reports.first)
                }
            }
        }

        @Test(arguments: Way.allCases) func oneThatHasEndedBeforeTheLoopLooks(way: Way) throws {
            try withLoop(way) { loop in
                let offspring = try Offspring(loop, shell("exit 3"))
                // Dead, and not reaped.
                var info = siginfo_t()
                #expect(waitid(P_PID, id_t(offspring.child.process), &info, WEXITED | WNOWAIT) == 0)
                #expect(offspring.reports.isEmpty)
                try loop.run()
                #expect(offspring.reports == [.exited(3)])
            }
        }

        @Test(arguments: Way.allCases) func childrenOfTheHostAreLeftToTheHost(way: Way) throws {
            try withLoop(way) { loop in
                var foreign = pid_t()
                var arguments: [UnsafeMutablePointer<CChar>?] = [strdup("true"), nil]
                #expect(posix_spawn(&foreign, "/bin/true", nil, nil, &arguments, nil) == 0)
                free(arguments[0])
                let offspring = try Offspring(loop, shell("exit 1"))
                try loop.run()
                #expect(offspring.reports == [.exited(1)])
                var status: CInt = -1
                #expect(waitpid(foreign, &status, 0) == foreign)
                #expect(status == 0)
            }
        }

        @Test(arguments: Way.allCases) func oneThatSomebodyElseHasReapedEndsUnknown(way: Way) throws {
            try withLoop(way) { loop in
                let offspring = try Offspring(loop, shell("exit 1"))
                var status: CInt = -1
                #expect(waitpid(offspring.child.process, &status, 0) == offspring.child.process)
                try loop.run()
                #expect(offspring.reports == [.unknown])
                #expect(throws: SystemError(.kill, ESRCH)) {
                    try offspring.child.kill(SIGTERM, wholeGroup: false)
                }
            }
        }

        @Test(arguments: Way.allCases) func itCanBeKilledUntilItHasEnded(way: Way) throws {
            try withLoop(way) { loop in
                let offspring = try Offspring(loop, ChildPlan("/bin/sleep", arguments: ["1000"]))
                try offspring.child.kill(SIGKILL, wholeGroup: false)
                try loop.run()
                #expect(offspring.reports == [.signaled(SIGKILL)])
                let before = loop.metrics.systemCalls[.kill]
                #expect(throws: SystemError(.kill, ESRCH)) {
                    try offspring.child.kill(SIGKILL, wholeGroup: false)
                }
                #expect(loop.metrics.systemCalls[.kill] == before, "the number may be another's by now")
            }
        }

        @Test(arguments: Way.allCases) func anUnreferencedOneDoesNotKeepTheLoop(way: Way) throws {
            try withLoop(way) { loop in
                let offspring = try Offspring(loop, ChildPlan("/bin/sleep", arguments: ["1000"]))
                try loop.turn(.poll)
                offspring.child.setReferenced(false)
                #expect(!loop.isAlive)
                try loop.run()
                offspring.child.setReferenced(true)
                #expect(loop.isAlive)
                try offspring.child.kill(SIGTERM, wholeGroup: false)
                try loop.run()
                #expect(offspring.reports == [.signaled(SIGTERM)])
                #expect(!loop.isAlive)
            }
        }

        @Test(arguments: Way.allCases) func oneThatOutlivesItsLoopIsReapedLater(way: Way) throws {
            var process: pid_t = 0
            var offspring: Offspring?
            try withLoop(way) { loop in
                offspring = try Offspring(loop, ChildPlan("/bin/sleep", arguments: ["1000"]))
                process = offspring!.child.process
            }
            #expect(offspring?.reports == [.unknown])
            #expect(kill(process, SIGKILL) == 0)
            var info = siginfo_t()
            #expect(waitid(P_PID, id_t(process), &info, WEXITED | WNOWAIT) == 0)
            try withLoop(way) { loop in
                let next = try Offspring(loop, ChildPlan("/bin/true"))
                #expect(next.reports.isEmpty)
                #expect(!isUnreaped(process))
                try loop.run()
            }
        }

        @Test(arguments: Way.allCases) func lettingGoOfItLeavesNoZombie(way: Way) throws {
            try withLoop(way) { loop in
                let process = try loop.spawn(ChildPlan("/bin/true")).process
                try loop.run()
                #expect(!isUnreaped(process))
            }
        }

        @Test func aHundredAtATime() throws {
            let ledger = Ledger()
            try EventLoop.withLoop(syscalls: ledger.table) { loop in
                let all = try (0..<100).map { try Offspring(loop, shell("exit \($0)")) }
                try loop.run()
                #expect(all.map(\.reports) == (0..<100).map { [.exited($0)] })
                #expect(loop.metrics.systemCalls[.waitid] == 100)
            }
            #expect(ledger.open.isEmpty)
        }

        @Test func theLoopTellsThatItWaitsForAChild() throws {
            try EventLoop.withLoop { loop in
                let offspring = try Offspring(loop, ChildPlan("/bin/true"))
                let process = offspring.child.process
                #expect(loop.whatKeepsItAlive.description.hasSuffix("for reading: child \(process) (/bin/true)"))
                try loop.run()
            }
        }
    }
}
