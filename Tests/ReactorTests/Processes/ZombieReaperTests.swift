import CLinux

/// Children that outlive their loops. In separate processes: elsewhere another test might start a child, and so reap the
/// orphans first.
struct ZombieReaperTests {
    /// In whichever way the loop watched it.
    @Test(.ownThread) func oneThatOutlivesItsLoopIsReapedLater() async {
        await #expect(processExitsWith: .success) {
            for way in WayToWatch.allCases {
                let orphan = try orphan(way)
                try startAnother(way)
                expect(isUnreaped(orphan), "it lives")
                end(orphan)
                try startAnother(way)
                expect(!isUnreaped(orphan))
            }
        }
    }

    @Test(.ownThread) func oneThatCannotBeWatchedIsNotLeftRunning() async {
        await #expect(processExitsWith: .success) {
            var calls = Syscalls()
            let real = calls
            var process: pid_t = 0
            calls.spawn = {
                let result = real.spawn($0)
                process = pid_t(result)
                return result
            }
            // Another thread takes the reserved place.
            calls.pidfdOpen = { $0 == getpid() ? real.pidfdOpen($0) : -Int(EMFILE) }
            calls.eventCreate = { process == 0 ? real.eventCreate() : -Int(EMFILE) }
            EventLoop.withLoop(syscalls: calls) { loop in
                #expect(throws: SystemError(.eventCreate, EMFILE)) {
                    _ = try loop.spawn(SpawnRequest("/bin/sleep", arguments: ["1000"]))
                }
            }
            // It has been killed.
            awaitDeath(of: process)
            try startAnother()
            expect(!isUnreaped(process))
        }
    }

    @Test(.ownThread) func itIsKnownByACopyOfItsPidfdOrElseByItsNumber() async {
        await #expect(processExitsWith: .success) {
            let first = try orphan()
            let copies = pidfds()
            expectEqual(copies.count, 1)
            for copy in copies { expect(fcntl(copy, F_GETFD) & FD_CLOEXEC != 0) }
            try startAnother()
            expectEqual(pidfds(), copies, "it lives")
            end(first)
            try startAnother()
            expect(pidfds().isEmpty)
            // Other code may have waited for any child: then it is forgotten.
            let reaped = try orphan()
            end(reaped)
            var status: CInt = 0
            expectEqual(waitpid(-1, &status, 0), reaped)
            try startAnother()
            expect(pidfds().isEmpty)
            // A full table has no room for a copy.
            var limit = rlimit()
            let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
            getrlimit(resource, &limit)
            let numbered = try orphan {
                var none = limit
                none.rlim_cur = 0
                setrlimit(resource, &none)
            }
            setrlimit(resource, &limit)
            expect(pidfds().isEmpty)
            end(numbered)
            try startAnother()
            expect(!isUnreaped(numbered))
            // If other code takes its status, its number may be reused for that code's own child. Here the two differ:
            // the copy stands for one child, and the number for another.
            let namesake = try orphan()
            let copy = try #require(pidfds().first)
            let other = hostsChild("/bin/sleep", "1000")
            let pidfd = clinux_pidfd_open(other)
            dup2(pidfd, copy)
            close(pidfd)
            for child in [namesake, other] { end(child) }
            try startAnother()
            expect(isUnreaped(namesake))
            expect(!isUnreaped(other))
            expect(pidfds().isEmpty)
            try startAnother()
            expect(isUnreaped(namesake), "it is looked for no more")
        }
    }
}

/// A child that outlives its loop. `last` is called at the very end of the loop.
private func orphan(_ way: WayToWatch = .pidfd, _ last: () -> Void = {}) throws -> pid_t {
    var offspring: Offspring?
    try way.withLoop {
        offspring = try Offspring($0, SpawnRequest("/bin/sleep", arguments: ["1000"]))
        last()
    }
    let orphan = try #require(offspring)
    expectEqual(orphan.reports, [.unknown])
    return orphan.child.process
}

private func startAnother(_ way: WayToWatch = .pidfd) throws {
    try way.withLoop { loop in
        _ = try loop.spawn(SpawnRequest("/bin/true"))
        try loop.run()
    }
}

private func end(_ process: pid_t) {
    expectEqual(kill(process, SIGKILL), 0)
    awaitDeath(of: process)
}

/// The descriptors of this process that are pidfds; fdinfo names the process. See pidfd_open(2).
private func pidfds() -> Set<CInt> {
    Set((0..<256).filter { text(ofFile: "/proc/self/fdinfo/\($0)").contains("\nPid:") })
}
