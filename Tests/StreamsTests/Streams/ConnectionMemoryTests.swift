@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// The instance size of a class without tail allocation.
// A function of the standard library that its interface does not name.
@_silgen_name("$ss36_class_getInstancePositiveExtentSizeySiyXlXpF")
private func instanceSize(_ type: AnyClass) -> Int

@Suite(.enabled(if: !isSanitized)) struct ConnectionMemoryTests {
    /// The block that the allocator uses for an object: with a header of 8 bytes, in steps of 16. Not
    /// malloc_usable_size(3), which is sometimes larger: a free block whose rest would be too small is used whole.
    private func size(_ object: AnyObject) -> Int { (instanceSize(type(of: object)) + 8 + 15) / 16 * 16 }

    private func core(_ promise: some Thenable) -> AnyObject {
        Mirror(reflecting: promise).descendant("core")! as AnyObject
    }

    private func hasNothingCold(_ connection: Connection) -> Bool {
        guard let rare = Mirror(reflecting: connection).descendant("cold") else { return false }
        return Mirror(reflecting: rare).children.isEmpty
    }

    /// The loop's table has 24 bytes for each number, and at most twice the needed size.
    private var table: Int { 48 }

    @Test(.network(turns: 20_000)) func anIdleConnectionNeedsNoMoreThan272Bytes() throws {
        // Each is asked to read more, as a server's are.
        for _ in 0..<100 {
            let (a, b) = try Connection.pair()
            let read = a.read()
            let fresh = size(a) + size(core(read)) + table
            expect(fresh <= 272, "\(fresh) bytes")
            try hang(b.write("message"), timeout: patience)
            expectEqual(try hang(read, timeout: patience), .bytes(Array("message".utf8)))
            try hang(a.write("answer"), timeout: patience)
            let next = a.read()
            expect(size(a) + size(core(next)) + table <= fresh)
            expect(hasNothingCold(a))
            a.abort()
        }
    }

    @Test(.network) func readChunkByChunkItIsWithinTheBoundToo() throws {
        let (a, b) = try Connection.pair()
        let all = a.forEachChunk { a.write($0) }
        try hang(b.write("message"), timeout: patience)
        expectEqual(try hang(b.read(exactly: 7), timeout: patience).count, 7)
        expect(hasNothingCold(a))
        // The body is in the core. Its captures are the user's.
        expect(size(a) + size(core(all)) + table <= 272)
        a.abort()
        all.catch(policy: .allErrors) { _ in }
    }

    /// The memory of a server with time limits for a connection that waits for its next frame, in addition to the
    /// promises.
    @Test(.network) func aLoopOverFramesWithLimitsOfTimeIsWithinItsBound() throws {
        let (a, b) = try Connection.pair()
        a.frameTimeouts = FrameTimeouts(idle: .seconds(60), frame: .seconds(10))
        let all = a.forEachFrame(DelimiterDecoder("\n")) { frame, _ in a.write(frame) }
        try hang(b.write("message\n"), timeout: patience)
        expectEqual(try hang(b.read(exactly: 7), timeout: patience).count, 7)
        let cold = try #require(Mirror(reflecting: a).descendant("cold", "some")) as AnyObject
        let clock = try #require(Mirror(reflecting: cold).descendant("frameClock", "some")) as AnyObject
        let sizes = [size(cold), size(clock)]
        expect(sizes.reduce(0, +) <= 288, "\(sizes)")
        a.abort()
        all.catch(policy: .allErrors) { _ in }
    }

    /// From the first weak reference on, the runtime counts in a table beside the object: an additional block, and
    /// slower counting.
    @Test(.network) func limitsOfTimeMakeNoSideTable() throws {
        let (a, b) = try Connection.pair()
        a.frameTimeouts = FrameTimeouts(idle: .seconds(60), frame: .seconds(10))
        let line = a.readLine()
        expect(!hasSideTable(a))
        try hang(b.write("x\n"), timeout: patience)
        expectEqual(try hang(line, timeout: patience), "x")
        let filtered = a.filter(RecordFilter(), timeout: .seconds(10))
        expect(filtered.isPending && !hasSideTable(a))
        filtered.catch(policy: .allErrors) { _ in }
    }

    /// The word after the metadata then has its two highest bits set.
    private func hasSideTable(_ object: AnyObject) -> Bool {
        (UnsafeRawPointer(Unmanaged.passUnretained(object).toOpaque()) + 8).load(as: UInt.self) >> 62 == 3
    }

    /// A server closes when its peer has ended.
    @Test(.network) func aCloseBehindThePeersEndNeedsNothing() throws {
        let (a, b) = try Connection.pair()
        b.close()
        expect(a.receive(), gives: [])
        expect(a.close().isFulfilled)
        expect(hasNothingCold(a) && a.isClosed)
        expectEqual(hang(a.closed), .closed)
    }
}
