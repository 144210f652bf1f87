@testable import PromisesTestSupport

/// A task that is cancelled on another thread ends its wait on the promise's loop: an element that arrives at that
/// moment is neither lost nor delivered twice.
@Suite(.ownThread) struct CancelledElsewhereTests {
    private actor Reader {
        private let home: LoopRemote
        private var connection: Connection?
        nonisolated var unownedExecutor: UnownedSerialExecutor { home.asUnownedSerialExecutor() }

        init(on home: LoopRemote) { self.home = home }

        func open(_ fd: CInt) throws { connection = try Connection(adopting: fd) }
        func read() async throws -> [UInt8] { try await connection!.receive().value }
        func close() { connection = nil }
    }

    @Test func bytesThatComeMeanwhileAreNotLost() throws {
        for _ in 0..<scaled(200) {
            try EventLoop.withLoop { loop throws in
                var ends: [CInt] = [-1, -1]
                expectEqual(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &ends), 0)
                let (mine, theirs) = (ends[0], ends[1])
                let reader = Reader(on: loop.remote)
                try hang(Promise { try await reader.open(mine) }, timeout: patience)
                let task = Task.detached(executorPreference: loop.remote) { try await reader.read() }
                // Until it waits.
                for _ in 0..<20 { try loop.turn(.poll) }
                TestThread.run {
                    task.cancel()
                    expectEqual(Glibc.write(theirs, "x", 1), 1)
                }
                let first = try hang(Guarantee { await task.result }, timeout: patience)
                let bytes: [UInt8]
                switch first {
                case .success(let read): bytes = read
                case .failure(let error):
                    expect(error is CancellationError)
                    bytes = try hang(Promise { try await reader.read() }, timeout: patience)
                }
                expectEqual(bytes, Array("x".utf8))
                try hang(Promise { await reader.close() }, timeout: patience)
                Glibc.close(theirs)
            }
        }
    }
}
