import CLinux

extension ProcessWide {
    /// The environment of a child at its start.
    struct ChildStartTests {
        private let loop = EventLoop.current

        @Test(.inRealTime) func itsArgumentsAndNothingElse() throws {
            let request = SpawnRequest(
                "/bin/sh", arguments: ["-c", "printf '<%s>' \"$@\"", "name", "a b", "", "*", "\"é\"\n"])
            // Along the path.
            expectEqual(try output(of: SpawnRequest("echo", arguments: ["hi"]), on: loop), "hi\n")
            expectEqual(try output(of: request, on: loop), "<a b><><*><\"é\"\n>")
        }

        @Test(.inRealTime) func theEnvironmentThatIsGivenOrOurs() throws {
            var request = SpawnRequest("/usr/bin/env", environment: ["A": "1=2", "B": ""])
            expectEqual(try output(of: request, on: loop).split(separator: "\n").sorted(), ["A=1=2", "B="])
            request.environment = nil
            setenv("REACTOR_CHILD", "heir", 1)
            defer { unsetenv("REACTOR_CHILD") }
            expect(try output(of: request, on: loop).contains("REACTOR_CHILD=heir\n"))
        }

        @Test(.inRealTime) func theWorkingDirectory() throws {
            var request = SpawnRequest("/bin/pwd", workingDirectory: "/usr")
            expectEqual(try output(of: request, on: loop), "/usr\n")
            request.workingDirectory = "/nowhere/at/all"
            #expect(throws: SystemError(.spawn, ENOENT)) { _ = try loop.spawn(request) }
        }

        @Test(.inRealTime) func noDescriptorsButTheThree() throws {
            // One without close-on-exec, as the host's own may be, whose number the shell's folder does not get.
            let opened = open("/dev/null", O_RDONLY)
            let stray = fcntl(opened, F_DUPFD, 100)
            close(opened)
            defer { close(stray) }
            // The shell lists its own descriptors, without another one for a program's folder.
            let request = shell("for fd in /proc/$$/fd/*; do echo ${fd##*/}; done", streams: [.null, .inherit, .null])
            let numbers = try output(of: request, on: loop).split(separator: "\n").compactMap { Int($0) }
            expectEqual(numbers.filter { $0 <= 2 }, [0, 1, 2])
            // One is the folder that the shell itself opens for the pattern.
            expect(numbers.count <= 4)
            expect(!numbers.contains(Int(stray)) || numbers.count == 3)
        }

        @Test(.inRealTime) func defaultSignalsAndAnEmptyMask() throws {
            var ignoring = sigaction()
            ignoring.__sigaction_handler.sa_handler = SIG_IGN
            var found = sigaction()
            sigaction(SIGUSR1, &ignoring, &found)
            defer { sigaction(SIGUSR1, &found, nil) }
            let request = SpawnRequest("/bin/grep", arguments: ["-E", "Sig(Blk|Ign)", "/proc/self/status"])
            let text = try withSignals(SIG_BLOCK, [SIGUSR2]) { try output(of: request, on: loop) }
            let sets = text.split(separator: "\n").map { $0.split(separator: "\t").last! }
            // The C library does not reset the two signals that it reserves for its threads: 32 and 33.
            expectEqual(sets.map { UInt64($0, radix: 16)! & ~(3 << 31) }, [0, 0])
        }

        @Test(.inRealTime) func itsOwnGroupIfAskedFor() throws {
            var request = SpawnRequest("/bin/sleep", arguments: ["1000"])
            let inOurs = try Offspring(loop, request)
            expectEqual(getpgid(inOurs.child.process), getpgrp())
            #expect(throws: SystemError(.kill, EINVAL)) {
                try inOurs.child.kill(SIGTERM, wholeGroup: true)
            }
            request.hasOwnGroup = true
            let inItsOwn = try Offspring(loop, request)
            expectEqual(getpgid(inItsOwn.child.process), inItsOwn.child.process)
            try inItsOwn.child.kill(SIGTERM, wholeGroup: true)
            try inOurs.child.kill(SIGKILL, wholeGroup: false)
            try loop.run()
            expectEqual(inItsOwn.reports, [.signaled(SIGTERM)])
            expectEqual(inOurs.reports, [.signaled(SIGKILL)])
        }

        @Test(.inRealTime) func whatCannotBeStartedLeavesNothingBehind() throws {
            let ledger = Ledger()
            EventLoop.withLoop(syscalls: ledger.table) { loop in
                for (request, code) in [
                    (SpawnRequest("/nowhere"), ENOENT), (SpawnRequest("/etc/passwd"), EACCES),
                    (SpawnRequest(""), EINVAL),
                    (SpawnRequest("/bin/tr\0ue"), EINVAL), (SpawnRequest("/bin/true", arguments: ["a\0b"]), EINVAL),
                    (SpawnRequest("/bin/true", environment: ["A=B": "C"]), EINVAL),
                    (SpawnRequest("/bin/true", streams: [.copy(-1), .null, .null]), EBADF),
                    (SpawnRequest("/bin/true", streams: [.copy(9999), .null, .null]), EBADF),
                ] {
                    #expect(throws: SystemError(.spawn, code), "\(request)") { _ = try loop.spawn(request) }
                }
                expect(!loop.isAlive)
            }
            expect(ledger.open.isEmpty)
        }

        @Test(.inRealTime, arguments: [EMFILE, ENOSYS]) func oneThatCannotBeWatchedIsNotStarted(code: CInt) throws {
            let ledger = Ledger()
            var calls = ledger.table
            var count = 0
            calls.spawn = { [real = calls.spawn] in
                count += 1
                return real($0)
            }
            calls.pidfdOpen = { _ in -Int(code) }
            calls.eventCreate = { -Int(EMFILE) }
            EventLoop.withLoop(syscalls: calls) { loop in
                #expect(throws: SystemError(.eventCreate, EMFILE)) { _ = try loop.spawn(SpawnRequest("/bin/true")) }
                expect(!loop.isAlive)
            }
            expectEqual(count, 0)
            expect(ledger.open.isEmpty)
        }

        /// It is registered when epoll has room.
        @Test(.inRealTime) func oneThatEpollHasNoRoomForIsWatchedLater() throws {
            var calls = Syscalls()
            let real = calls
            var pidfd: CInt = -1
            var refusals = 0
            calls.pidfdOpen = {
                let result = real.pidfdOpen($0)
                if $0 != getpid() { pidfd = CInt(result) }
                return result
            }
            calls.epollControl = {
                guard $1 == EPOLL_CTL_ADD, $2 == pidfd, refusals < 2 else { return real.epollControl($0, $1, $2, $3) }
                refusals += 1
                return -Int(ENOSPC)
            }
            try EventLoop.withLoop(clock: VirtualClock(), syscalls: calls) { loop in
                let offspring = try Offspring(loop, SpawnRequest("/bin/true"))
                awaitDeath(of: offspring.child.process)
                try loop.run()
                expectEqual(offspring.reports, [.exited(0)])
                expectEqual(refusals, 2)
            }
        }

        @Test(.inRealTime) func descriptorsMayChangePlaces() throws {
            let pipe = Ends.pipe()
            _ = fcntl(pipe.far, F_SETFL, 0)
            let null = open("/dev/null", O_RDWR | O_CLOEXEC)
            defer { close(null) }
            // Error and output, swapped.
            let request = shell("echo out; echo err >&2", streams: [.copy(null), .copy(null), .copy(pipe.far)])
            let offspring = try Offspring(loop, request)
            pipe.closeFar()
            try loop.run()
            expectEqual(offspring.reports, [.exited(0)])
            expectEqual(take(from: pipe.near), 4)
            expectEqual(take(from: pipe.near), 0)
        }
    }
}
