@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

@Suite(.ownThread) struct AsyncHandlersOnGroupTests {
    private final class Store {
        private let tally: Tally.Token?
        var lines = 0
        var places: Set<String> = []
        init(_ tally: Tally? = nil) { self.tally = tally?.token() }
    }

    private actor Elsewhere { func enter() {} }

    @Test(.group(2), arguments: [false, true]) func eachLoopHasAValueOfItsOwn(isAsync: Bool) throws {
        let tally = Tally(keepsEnders: true)
        let stores = LoopLocal { Store(tally) }
        let errors = Shared<[String]>([])
        let onError = { @Sendable (error: any Error, connection: Connection) in
            let lines = stores.value(for: connection).lines
            errors.change { $0.append("\(error) \(lines)") }
        }
        let answer = { @Sendable (line: String, connection: Connection) throws -> Promise<Void> in
            let store = stores.value(for: connection)
            store.lines += 1
            store.places.insert(nameOfLoop())
            if line == "throw" { throw Flaw(store.places.count) }
            return connection.write(line)
        }
        let (options, elsewhere) = (ServeOptions(balancing: .roundRobin), Elsewhere())
        let served =
            isAsync
            ? listener.serveAsync(on: loops, options, onError: onError) { connection in
                for try await line in connection.lines {
                    // It comes back from there to its loop.
                    await elsewhere.enter()
                    try await answer(line, connection).value
                }
            }
            : listener.serve(on: loops, options, onError: onError) { connection in
                connection.forEachLine { try answer($0, connection) }
            }
        for text in ["a\nb\n", "c\n", "d\n", "throw\n"] {
            let client = try Peer(to: listener.localAddress, sending: text)
            expectEqual(try reply(of: client), (text == "throw\n" ? "" : text.filter { $0 != "\n" }))
            client.close()
        }
        let answers = hang(loops.collect(stores) { ($0.lines, $0.places.sorted()) })
        expectEqual(answers.compactMap { try? $0.get().0 }, [3, 2])
        expectEqual(answers.compactMap { try? $0.get().1 }, [["loop-1"], ["loop-2"]])
        expectEqual(errors.value, ["Flaw(number: 1) 2"])
        try listener.end(served)
        expectEqual(tally.alive, 2)
        loops.stop()
        loops.join()
        expectEqual(tally.alive, 0)
        expect(Set(tally.enders).count == 2 && !tally.enders.contains(pthread_self()), "each on its loop's thread")
    }

    @Test(.group(3)) func collectingFromLoopsThatHaveEnded() throws {
        let (entered, release) = (Gate(), Gate())
        loops[0].stop()
        loops[0].join()
        loops[1].submit {
            entered.open()
            release.wait()
        }
        entered.wait()
        let names = loops.collect { nameOfLoop() }
        // A job posted before the end is refused or released: neither is an answer.
        expect(names.isPending)
        release.open()
        let answers = hang(names)
        expectEqual(answers, [.failure(.loopEnded), .success("loop-2"), .success("loop-3")])
        loops.stop()
        loops.join()
        expectEqual(hang(loops.collect { 1 }), Array(repeating: .failure(.loopEnded), count: 3))
        listener.close()
        // A loop that has answered may still have to say that it has ended its work here.
        try EventLoop.current.run()
    }

    @Test func anAsyncFunctionMayCollect() async throws {
        let group = try LoopGroup(loops: 2)
        let stores = LoopLocal { Store() }
        group.next().submit { stores.withValue { $0.lines += 1 } }
        let lines = await group.collect(stores) { $0.lines }.value
        expectEqual(lines.compactMap { try? $0.get() }.sorted(), [0, 1])
        group.stop()
    }
}

private func nameOfLoop() -> String { EventLoop.current.remote.name ?? "?" }
