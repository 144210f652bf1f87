import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

/// `EventLoop.run { … }` in a method of an actor.
@Suite struct BodiesOfActorsTests {
    private actor Counter {
        private var count = 0

        func addInBody() throws -> Int {
            try EventLoop.withLoop { loop in
                try loop.run {
                    self.count += 1
                    return self.count
                }
            }
        }

        func addBesideBody() throws -> Int {
            try EventLoop.withLoop { loop in
                count += 1
                return count + (try loop.run { 1 })
            }
        }
    }

    private actor Local {
        private let home: LoopRemote
        private var count = 0
        nonisolated var unownedExecutor: UnownedSerialExecutor { home.asUnownedSerialExecutor() }

        init(on home: LoopRemote) { self.home = home }

        func addInBody(on loop: EventLoop) throws -> Int {
            try loop.run {
                await Task.yield()
                self.count += 1
                return self.count
            }
        }
    }

    @Test func aBodyOfTheActorThatTheMethodHoldsIsRefused() async throws {
        let counter = Counter()
        let error = await #expect(throws: DispatchError.self) { try await counter.addInBody() }
        expect("\(error!)".contains("method of the actor Counter"))
    }

    @Test func aBodyThatUsesNothingOfTheActorRuns() async throws {
        expectEqual(try await Counter().addBesideBody(), 2)
    }

    @Test func anActorOfTheLoopMayBeUsed() throws {
        try EventLoop.withLoop { loop throws in
            let local = Local(on: loop.remote)
            loop.enqueue {
                let count = try? local.assumeIsolated { try $0.addInBody(on: EventLoop.current) }
                expectEqual(count, 1)
            }
            try loop.run()
        }
    }
}
