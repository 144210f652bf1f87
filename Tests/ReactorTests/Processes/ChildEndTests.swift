import CLinux

extension ProcessWide {
    /// How a loop learns of the end of a child, in each of the ways.
    struct ChildEndTests {
        @Test(arguments: WayToWatch.allCases) func theCodeOrTheSignalIsReportedOnceAndTheHostsAreLeftAlone(
            way: WayToWatch
        ) throws {
            try way.withLoop { loop in
                let foreign = hostsChild("/bin/true")
                let exits = try Offspring(loop, shell("exit 7"))
                let dies = try Offspring(loop, shell("kill -TERM $$"))
                let succeeds = try Offspring(loop, SpawnRequest("/bin/true"))
                // One has ended before the loop looks.
                awaitDeath(of: exits.child.process)
                expect(loop.isAlive && exits.reports.isEmpty)
                try loop.run()
                expectEqual(exits.reports, [.exited(7)])
                expectEqual(dies.reports, [.signaled(SIGTERM)])
                expectEqual(succeeds.reports, [.exited(0)])
                for offspring in [exits, dies, succeeds] {
                    expect(!isUnreaped(offspring.child.process))
                    expectEqual(offspring.child.status, offspring.reports.first)
                }
                if way == .pidfd { expectEqual(loop.metrics.systemCalls[.waitid], 3) }
                expectEqual(status(of: foreign), 0)
            }
        }

        @Test(arguments: WayToWatch.allCases) func oneThatOtherCodeHasReapedEndsUnknown(way: WayToWatch) throws {
            try way.withLoop { loop in
                let offspring = try Offspring(loop, shell("exit 1"))
                expectEqual(status(of: offspring.child.process), 1 << 8)
                try loop.run()
                expectEqual(offspring.reports, [.unknown])
                #expect(throws: SystemError(.kill, ESRCH)) {
                    try offspring.child.kill(SIGTERM, wholeGroup: false)
                }
            }
        }

        @Test(arguments: WayToWatch.allCases) func anUnreferencedOneDoesNotKeepTheLoopAndCanBeKilledUntilItEnds(
            way: WayToWatch
        ) throws {
            try way.withLoop { loop in
                let offspring = try Offspring(loop, SpawnRequest("/bin/sleep", arguments: ["1000"]))
                try loop.turn(.poll)
                offspring.child.setReferenced(false)
                expect(!loop.isAlive)
                offspring.child.setReferenced(true)
                expect(loop.isAlive)
                try offspring.child.kill(SIGTERM, wholeGroup: false)
                try loop.run()
                expectEqual(offspring.reports, [.signaled(SIGTERM)])
                expect(!loop.isAlive)
                let before = loop.metrics.systemCalls[.kill]
                #expect(throws: SystemError(.kill, ESRCH)) { try offspring.child.kill(SIGKILL, wholeGroup: false) }
                expectEqual(loop.metrics.systemCalls[.kill], before, "the number may be another's by now")
            }
        }

        /// Its number stays reserved for the group until it is released, so no other process may have it.
        @Test(arguments: WayToWatch.allCases) func whatItLeavesInItsGroupCanBeKilled(way: WayToWatch) throws {
            let pipe = Ends.pipe()
            try way.withLoop { loop in
                var request = shell("sleep 20 & exit 2", streams: [.null, .copy(pipe.far), .null])
                request.hasOwnGroup = true
                var offspring: Offspring? = try Offspring(loop, request)
                let process = try #require(offspring).child.process
                pipe.closeFar()
                try loop.run()
                expectEqual(offspring?.reports, [.exited(2)])
                expect(isUnreaped(process))
                #expect(throws: SystemError(.kill, ESRCH)) { try offspring?.child.kill(SIGKILL, wholeGroup: false) }
                try offspring?.child.kill(SIGKILL, wholeGroup: true)
                // The kernel reports the end of the only writer.
                expect(isReadable(pipe.near, within: 10_000))
                offspring = nil
                expect(!isUnreaped(process))
            }
        }

        @Test(arguments: WayToWatch.allCases) func itsGroupIsLeftAloneIfOtherCodeHasReapedIt(way: WayToWatch) throws {
            try way.withLoop { loop in
                var request = SpawnRequest("/bin/true")
                request.hasOwnGroup = true
                let offspring = try Offspring(loop, request)
                try loop.run()
                expectEqual(status(of: offspring.child.process), 0)
                #expect(throws: SystemError(.kill, ESRCH)) { try offspring.child.kill(SIGKILL, wholeGroup: true) }
                expect(loop.metrics.systemCalls[.kill] == nil)
            }
        }

        /// The kernel has dropped its registration with the descriptor, without notifying the loop.
        @Test func aWatchOfAClosedDescriptorDoesNotHideTheEnd() throws {
            let real = Syscalls()
            let number = CInt(real.eventCreate())
            var calls = real
            // Closes the watched descriptor and gives its number to the pidfd, atomically, so that no other thread can
            // take it. Not to the loop's placeholder: the loop closes it first, and the number would be free for any
            // thread.
            calls.pidfdOpen = {
                let fd = CInt(real.pidfdOpen($0))
                if $0 == getpid() { return Int(fd) }
                expect(fd != number, "it would be closed here, and again by the loop")
                dup2(fd, number)
                close(fd)
                return Int(number)
            }
            var offspring: Offspring?
            try EventLoop.withLoop(syscalls: calls) { loop in
                let stale = try loop.watch(number, for: .reading) { _ in Issue.record("its descriptor is closed") }
                offspring = try Offspring(loop, shell("exit 5"))
                stale.cancel()
                awaitDeath(of: offspring!.child.process)
                try loop.turn(.poll)
            }
            expectEqual(offspring?.reports, [.exited(5)])
        }
    }
}
