/// Several loops as one, and the distribution of work over them.
struct LoopGroupTests {
    private func with(_ loops: Int, _ body: (LoopGroup) throws -> Void) throws {
        let group = try LoopGroup(loops: loops)
        defer {
            group.stop()
            group.join()
        }
        try body(group)
    }

    // MARK: Making

    @Test(arguments: [
        ("server", ["server-1", "server-2", "server-3"]), ("", ["loop-1", "loop-2", "loop-3"]),
        ("a-very-long-name-of-a-group", ["a-very-long-n-1", "a-very-long-n-2", "a-very-long-n-3"]),
    ])
    func theLoopsBearNameAndNumber(name: String, names: [String]) throws {
        let group = try LoopGroup(loops: 3, name: name)
        expectEqual(group.count, 3)
        expectEqual(group.map(\.name), names)
        let seen = SharedList<String>()
        for (index, remote) in group.enumerated() {
            expect(group[index] === remote)
            remote.submit { seen.append("\(nameOfThisThread()) \(EventLoop.current.remote == remote)") }
            spin { seen.value.count == index + 1 }
        }
        let expected = names.map { "\($0) true" }
        expectEqual(seen.value, expected)
        group.stop()
        group.join()
        expectEqual(group.map(\.hasEnded), [true, true, true])
    }

    @Test func thereAreAsManyAsCoresUnlessSaidOtherwise() throws {
        let group = try LoopGroup()
        expect(group.count == LoopGroup.defaultLoops && group.count >= 1)
        group.stop()
        group.join()
    }

    @Test(arguments: [0, -1, Int.min]) func thereMustBeOne(loops: Int) {
        let error = #expect(throws: SystemError.self) { try LoopGroup(loops: loops) }
        expectEqual(error?.code, EINVAL)
        expectEqual(error?.detail?.contains("LoopGroup(loops: \(loops))"), true)
    }

    @Test(arguments: [1, 2, 3]) func ifOneCannotBeStartedNoneIsLeft(failing: Int) {
        let (started, closed) = (Counter(), Counter())
        let error = #expect(throws: SystemError.self) {
            try LoopGroup(
                loops: 3, name: "worker",
                syscalls: {
                    var table = Syscalls()
                    table.close = { [real = table.close] in
                        closed.add()
                        return real($0)
                    }
                    return table
                },
                create: { handle, address in
                    started.add()
                    return started.value == failing ? EAGAIN : LibraryThread.create(handle, address)
                })
        }
        expectEqual(error?.code, EAGAIN)
        expectEqual(error?.detail?.contains("\"worker-\(failing)\""), true)
        expectEqual(started.value, failing)
        expectEqual(closed.value, 3 * (failing - 1), "the others have closed epoll, mailbox and timer already")
    }

    // MARK: Choosing

    @Test func nextAndRoundRobinAreOneAfterTheOtherHoweverManyThereAre() throws {
        try with(3) { group in
            let turns = (0..<4).map { _ in group.firstIndex(of: group.next())! }
            expectEqual(turns, [0, 1, 2, 0])
            expectEqual(group.loads, [0, 0, 0], "which counts for nothing")
            var leases = (0..<4).map { _ in group.lease(.roundRobin) }
            defer { withExtendedLifetime(leases) {} }
            expectEqual(leases.map(\.remote), [1, 2, 0, 1].map { group[$0] })
            leases.removeAll { $0.remote != group[1] }
            leases += (0..<3).map { _ in group.lease(.roundRobin) }
            expectEqual(group.loads, [1, 3, 1])
        }
    }

    @Test func aLeaseGoesWhereThereAreFewestAndCountsUntilItIsCancelledOrReleased() throws {
        try with(3) { group in
            var leases = (0..<6).map { _ in group.lease() }
            expectEqual(group.loads, [2, 2, 2])
            let emptied = leases[1].remote
            for lease in leases where lease.remote == emptied {
                expect(lease.isActive && lease.cancel() && !lease.cancel() && !lease.isActive)
            }
            expectEqual(group.loads.sorted(), [0, 2, 2])
            leases += [group.lease(), group.lease()]
            expectEqual(leases[6...].map(\.remote), [emptied, emptied])
            expectEqual(group.loads, [2, 2, 2])
            leases = []
            expectEqual(group.loads, [0, 0, 0])
        }
    }

    @Test func loopsThatHaveEndedArePassedOver() throws {
        try with(3) { group in
            group[1].stop()
            group[1].join()
            let next = (0..<6).map { _ in group.next() }
            expect(!next.contains(group[1]))
            let leases = (0..<4).map { _ in group.lease() }
            expectEqual(group.loads, [2, 0, 2])
            group.stop()
            group.join()
            expect(group.contains(group.next()))
            expect(group.lease().remote.hasEnded)
            expect(leases.allSatisfy { !$0.isActive })
        }
    }

    // MARK: The end

    @Test func theLastReferenceStopsThem() throws {
        var group: LoopGroup? = try LoopGroup(loops: 2)
        let remotes = Array(group!)
        let lease = Shared(group?.lease())
        group = nil
        expectEqual(remotes.map(\.hasEnded), [false, false], "a lease is a reference")
        // On a thread of the group: it must not wait for itself.
        remotes[0].submit { lease.value = nil }
        for remote in remotes { remote.join() }
        expectEqual(remotes.map(\.hasEnded), [true, true])
    }

    @Test func stopAndJoinMayBeRepeatedAndCalledOnItsThreads() throws {
        let group = try LoopGroup(loops: 2)
        let hasReturned = Shared(false)
        group[0].submit {
            group.stop()
            group.join()
            hasReturned.value = true
        }
        group.join()
        expect(hasReturned.value)
        group.stop()
        group.join()
    }
}
