@testable import Promises
@testable import PromisesTestSupport
@testable import ReactorIO
@testable import ReactorIOTestSupport

/// The promise of a read is a plain core, which the loop reuses, and which refers to its connection while the read
/// waits. However the wait ends, the next promise of that core keeps nothing of it.
struct ReadReuseTests {
    private let tally = Tally()

    private func address<T>(_ guarantee: Guarantee<T>) -> UnsafeMutableRawPointer {
        Unmanaged.passUnretained(guarantee.core).toOpaque()
    }

    /// Makes promises from all cores that the loop has kept, waits for them, and cancels some: none may reach a
    /// connection.
    private func useAllKeptCores(of loop: EventLoop) throws {
        // Cores without a source and without a producer, which a cancellation cannot end.
        let bare = (0..<128).map { _ in PromiseCore.pending(.of(Follow<Int>.self)) }
        for core in bare { core.cancel() }
        expect(bare.allSatisfy { $0.settled == nil })
        for core in bare { core.fulfill(1) }
        let (promise, resolver) = Promise<Int>.pending()
        let steps = (0..<200).map { number in promise.map { $0 + number } }
        for step in steps[..<100] { step.cancel() }
        resolver.fulfill(1)
        try loop.turn(.poll)
        expectEqual(steps.last?.settledValue, 200)
    }

    @Test(.pair, .disabled(if: isSanitized)) func aReadThatHasRunIsUsedAgain() throws {
        var first: UnsafeMutableRawPointer?
        func readOnce() -> Promise<Int> {
            let read = connection.read()
            first = address(read)
            return read.map { outcome in if case .bytes(let bytes) = outcome { bytes.count } else { 0 } }
                .asPromise()
        }
        let count = readOnce()
        try peer.send("hello")
        expectEqual(try hang(count, timeout: patience), 5)
        var others: [Guarantee<ReadOutcome>] = []
        // The core of the step after it is kept too.
        for _ in 0..<4 {
            let read = connection.read()
            others.append(read)
            read.asPromise().cancel()
        }
        expect(others.contains { address($0) == first })
    }

    enum Way: CaseIterable {
        case run, cancelled, cancelledThroughItsStep, droppedByARace, cancelledElsewhere, otherProducers
    }

    @Test(arguments: Way.allCases, [false, true]) func howeverAReadEndsTheNextGetsTheBytes(way: Way, filtered: Bool)
        throws
    {
        try withPair(madeBy: { filtered ? try $0.filteredPair() : try $0.pair() }) { net, connection, peer in
            var sent = 0
            func send(_ text: String) throws {
                try peer.send(filtered ? RecordFilter.data(Array(text.utf8), at: sent) : Array(text.utf8))
                sent += text.utf8.count
            }
            func expectCancelled<T>(_ promise: Promise<T>) throws {
                try net.loop.turn(.poll)
                expect(promise.error as? PromiseError == .cancelled)
            }
            for _ in 0..<3 {
                switch way {
                case .run:
                    let count = connection.read().map { _ in 5 }
                    try send("hello")
                    expectEqual(hang(count), 5)
                case .cancelled:
                    let length = connection.read().map { _ in 1 }.asPromise()
                    length.cancel()
                    try expectCancelled(length)
                case .cancelledThroughItsStep:
                    let chain = Promise.value(1).then { _ in connection.read() }
                    try net.loop.turn(.poll)
                    expect(chain.isPending && net.loop.isAlive)
                    chain.cancel()
                    try expectCancelled(chain)
                    chain.cancel()
                    expect(!net.loop.isAlive)
                case .droppedByARace:
                    let (one, other) = (connection.read().map { _ in 1 }, after(.seconds(1000)).map { 2 })
                    let first = race(one.asPromise(), other.asPromise(), Promise.value(3))
                    expectEqual(try hang(first, timeout: patience), 3)
                case .cancelledElsewhere:
                    let read = connection.read().asPromise()
                    TestThread.run { read.cancel() }
                    #expect(throws: PromiseError.cancelled) { try hang(read, timeout: patience) }
                case .otherProducers:
                    let line = connection.readLine()
                    line.cancel()
                    try expectCancelled(line)
                    let chunks = connection.forEachChunk { _ in }
                    try net.loop.turn(.poll)
                    chunks.cancel()
                    try expectCancelled(chunks)
                }
                try useAllKeptCores(of: net.loop)
                try send("world\n")
                expectEqual(try hang(connection.readLine(), timeout: patience), "world")
            }
            let last = connection.read()
            connection.abort()
            expect(last.isFulfilled)
            try useAllKeptCores(of: net.loop)
        }
    }

    @Test func aReadWithoutAHandlerWhoseConnectionIsReleased() throws {
        weak var witness: Connection?
        try withNetwork { net in
            let peer = try {
                let (connection, peer) = try net.pair()
                witness = connection
                let token = tally.token()
                // Only the read retains the connection.
                connection.read().done { _ in withExtendedLifetime(token) {} }
                return peer
            }()
            expect(witness != nil && net.loop.isAlive)
            try useAllKeptCores(of: net.loop)
            peer.end()
            try net.loop.run()
            expect(isGone(witness) && tally.alive == 0)
            try useAllKeptCores(of: net.loop)
        }
    }

    @Test func aLoopThatEndsMeanwhile() throws {
        weak var witness: Connection?
        var read: Guarantee<ReadOutcome>?
        var chain: Promise<ReadOutcome>?
        try withNetwork { net in
            let (connection, peer) = try net.pair()
            witness = connection
            read = connection.read()
            chain = read?.asPromise().then { .value($0) }
            try net.loop.turn(.poll)
            withExtendedLifetime(peer) {}
        }
        expect(isGone(witness))
        if case .failed? = read?.settledValue {} else { Issue.record("\(String(describing: read))") }
        // Its loop and its connection have been released.
        read?.asPromise().cancel()
        chain?.cancel()
        expectEqual(chain?.isRejected, true)
        try inLoop { try useAllKeptCores(of: $0) }
    }

    @Test(.network) func aTracedReadIsNotUsedAgain() throws {
        let (connection, peer) = try net.pair()
        weak var weakRead: PromiseCore?
        func readOnce() -> Promise<Int> {
            let read = connection.read()
            weakRead = read.core
            return read.map { _ in 1 }.asPromise()
        }
        let done = readOnce()
        try peer.send("x")
        expectEqual(try hang(done, timeout: patience), 1)
        let next = connection.read()
        expect(weakRead == nil && next.isPending)
        next.asPromise().cancel()
    }
}
