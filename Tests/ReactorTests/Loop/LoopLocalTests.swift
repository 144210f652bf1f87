/// Values that each loop has separately.
struct LoopLocalTests {
    private final class Store {
        private let token: Tally.Token
        private var visits = 0
        init(_ tally: Tally) { token = tally.token() }

        func visit() -> Int {
            visits += 1
            return visits
        }
    }

    private func ask<Value: Sendable>(_ remote: LoopRemote, _ body: @escaping @Sendable () -> Value) -> Value {
        let answer = Shared<Value?>(nil)
        let done = Gate()
        expect(
            remote.submit {
                let value = body()
                answer.change { $0 = value }
                done.open()
            })
        done.wait()
        return answer.value!
    }

    @Test func eachLoopMakesItsOwnWhenItIsAskedFor() throws {
        let tally = Tally(keepsEnders: true)
        let stores = LoopLocal { Store(tally) }
        let loops = try (0..<2).map { _ in try EventLoop.spawn() }
        let visit = { @Sendable () -> Int in stores.withValue { $0.visit() } }
        expectEqual(tally.alive, 0)
        expectEqual(loops.map { ask($0, visit) }, [1, 1])
        expectEqual(ask(loops[0], visit), 2)
        expectEqual(tally.alive, 2)
        let threads = loops.map { ask($0) { pthread_self() } }
        for (loop, left) in zip(loops, [1, 0]) {
            loop.stop()
            loop.join()
            expectEqual(tally.alive, left)
        }
        expectEqual(tally.enders, threads, "with the loop, and on its thread")
    }

    /// Each is found among the others, in any order, and however many have ended.
    @Test func eachLocalHasItsOwnValue() {
        let tally = Tally()
        EventLoop.withLoop { loop in
            var locals = (0..<20).map { number in LoopLocal { (number, tally.token()) } }
            func numbers() -> [Int] { locals.map { local in local.withValue { $0.0 } } }
            for index in [7, 19, 0, 12] { expectEqual(locals[index].withValue { $0.0 }, index) }
            expectEqual(numbers(), Array(0..<20))
            for index in [19, 13, 6, 0] { locals.remove(at: index) }
            expectEqual(tally.alive, 16)
            expectEqual(numbers(), (0..<20).filter { ![19, 13, 6, 0].contains($0) })
        }
        expectEqual(tally.alive, 0)
    }

    @Test func itIsReleasedOnTheLoopsThreadWhenTheLocalIs() throws {
        let tally = Tally(keepsEnders: true)
        let loop = try EventLoop.spawn()
        var stores: LoopLocal<Store>? = LoopLocal { Store(tally) }
        let thread = ask(loop) { [stores] in
            _ = stores!.withValue { $0.visit() }
            return pthread_self()
        }
        stores = nil
        expectEqual(ask(loop) { 0 }, 0)
        expectEqual(tally.enders, [thread])
        loop.stop()
        loop.join()
    }

    @Test func atTheEndWhatIsLeftCanStillBeAskedFor() {
        let tally = Tally()
        let visits = SharedList<Int>()
        let stores = LoopLocal { Store(tally) }
        let lasts = LoopLocal { LastWords { visits.append(stores.withValue { $0.visit() }) } }
        EventLoop.withLoop { _ in
            lasts.withValue { _ in }
            expectEqual(stores.withValue { $0.visit() }, 1)
        }
        expectEqual(visits.value, [2], "the one of the loop")
        expectEqual(tally.alive, 0)
        EventLoop.withLoop { _ in lasts.withValue { _ in } }
        expectEqual(visits.value, [2, 1], "one that is not kept")
        expectEqual(tally.alive, 0)
    }
}
