/// Loops on threads that the library starts.
struct SpawnTests {
    @Test func itRunsWhatIsSubmittedOnOneThreadOfThatName() throws {
        let worker = try EventLoop.spawn(name: "a-name-of-more-than-15-bytes")
        let seen = SharedList<String>()
        for _ in 0..<3 {
            worker.submit {
                seen.append("\(nameOfThisThread()) \(EventLoop.current.remote == worker)")
            }
        }
        expect(worker.stop())
        worker.join()
        expectEqual(seen.value, Array(repeating: "a-name-of-more- true", count: 3))
        expectEqual(worker.name, "a-name-of-more-than-15-bytes")
    }

    @Test func itGoesOnWithNothingToDoUntilItIsStopped() throws {
        let worker = try EventLoop.spawn()
        expectEqual(worker.name, "loop")
        for count in 1...3 {
            let turns = Shared(0)
            worker.submit { turns.value = count }
            spin { turns.value == count }
            expect(!worker.hasEnded)
        }
        worker.stop()
        worker.join()
        expect(worker.hasEnded)
        expect(!worker.stop() && !worker.submit {})
        worker.join()
    }

    @Test func whatItHeldIsReleasedBeforeJoinReturns() throws {
        let tally = Tally()
        let worker = try EventLoop.spawn()
        let pipe = Ends.pipe()
        let near = pipe.near
        let timer = tally.boundForThreads()
        let handler = tally.boundForThreads()
        worker.submit {
            EventLoop.current.schedule(after: .seconds(3600)) { timer() }
            let watch = Result { try EventLoop.current.watch(near, for: .reading) { _ in handler() } }
            worker.stop()
            worker.submit(handler)
            withExtendedLifetime(watch) {}
        }
        worker.join()
        expectEqual(tally.alive, 2, "the two that this test holds")
        withExtendedLifetime((timer, handler)) {}
    }

    @Test func stoppingEndsNestedRunsToo() throws {
        let worker = try EventLoop.spawn()
        let depth = Shared(0)
        @Sendable func dive() {
            depth.value += 1
            guard depth.value < 3 else { return }
            let loop = EventLoop.current
            loop.enqueue { dive() }
            let hold = loop.hold()
            try? loop.run()
            hold.cancel()
        }
        worker.submit { dive() }
        spin { depth.value == 3 }
        worker.stop()
        worker.join()
        expect(worker.hasEnded)
    }

    @Test func stopByAHandlerEndsItsInnermostRunOnly() throws {
        let worker = try EventLoop.spawn()
        let steps = SharedList<String>()
        worker.submit {
            let loop = EventLoop.current
            loop.enqueue { loop.stop() }
            let hold = loop.hold()
            try? loop.run()
            hold.cancel()
            steps.append("back")
        }
        worker.submit { steps.append("next") }
        spin { steps.value.count == 2 }
        expect(!worker.hasEnded)
        worker.stop()
        worker.join()
        expect(steps.value.contains("back"))
    }

    @Test func noDescriptorsAreAnError() {
        for failing in 0..<2 {
            #expect(throws: SystemError.self) {
                try EventLoop.spawn(
                    name: "worker",
                    syscalls: {
                        var table = Syscalls()
                        if failing == 0 { table.epollCreate = { -Int(EMFILE) } }
                        if failing == 1 { table.eventCreate = { -Int(EMFILE) } }
                        return table
                    })
            }
        }
    }

    @Test func aLoopThatCannotWaitEndsAndSaysSo() throws {
        let fails = Shared(false)
        let worker = try EventLoop.spawn(
            name: "ailing",
            syscalls: {
                var table = Syscalls()
                let wait = table.epollWait
                table.epollWait = { fails.value ? -Int(EBADF) : wait($0, $1, $2, $3) }
                return table
            })
        worker.submit { fails.value = true }
        worker.join()
        expect(worker.hasEnded)
    }

    @Test func remotesOfOneLoopAreEqual() throws {
        EventLoop.withLoop { loop in
            expect(loop.remote === loop.remote)
            EventLoop.withLoop { expect($0.remote != loop.remote) }
            expectEqual(Set([loop.remote, loop.remote, EventLoop.main]).count, 2)
        }
        let ended = EventLoop.withLoop { ($0, $0.remote) }
        expectEqual(ended.0.remote, ended.1)
        expect(ended.0.remote.hasEnded && ended.1.hasEnded)
    }
}
