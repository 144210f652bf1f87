/// Loops on threads that the library starts.
struct SpawnTests {
    @Test func onAThreadOfThatNameItRunsWhatIsSubmittedUntilItIsStopped() throws {
        let worker = try EventLoop.spawn(name: "a-name-of-more-than-15-bytes")
        expectEqual(worker.name, "a-name-of-more-than-15-bytes")
        let seen = SharedList<String>()
        for count in 1...3 {
            worker.submit { seen.append("\(nameOfThisThread()) \(EventLoop.current.remote == worker)") }
            spin { seen.value.count == count }
            expect(!worker.hasEnded)
        }
        expectEqual(seen.value, Array(repeating: "a-name-of-more- true", count: 3))
        expect(worker.stop())
        worker.join()
        expect(worker.hasEnded && !worker.stop() && !worker.submit {})
        worker.join()
    }

    @Test func stoppingEndsNestedRunsToo() throws {
        let worker = try EventLoop.spawn()
        expectEqual(worker.name, "loop")
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

    @Test func noDescriptorsAreAnError() {
        for call in [SystemCall.epollCreate, .eventCreate] {
            #expect(throws: SystemError(call, EMFILE)) {
                try EventLoop.spawn(name: "worker", syscalls: { Failures([call: 1], EMFILE).table() })
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
