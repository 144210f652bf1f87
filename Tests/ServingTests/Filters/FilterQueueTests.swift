@testable import Promises
@testable import PromisesTestSupport
@testable import ReactorIO
@testable import ReactorIOTestSupport

/// Writes that wait for the kernel and writes that wait for the filter are one queue for the limits of a connection.
struct FilterQueueTests {
    enum Place: CaseIterable { case kernel, filter, both }
    enum Measure: CaseIterable { case bytes, memory }

    @Test(.filteredPair(turns: 2000), arguments: Place.allCases, Measure.allCases)
    func congestionEndsOnlyWhenThereIsRoom(place: Place, measure: Measure) throws {
        let budget = net.limitSends(to: place == .filter ? .max : 0)
        switch measure {
        case .bytes: connection.writeWatermarks = (low: 20, high: 100)
        case .memory: connection.writeQueueLimit = 2000
        }
        var writes = place == .both ? [connection.write("first")] : []
        try peer.send(RecordFilter.data([1]) + (place == .kernel ? [] : RecordFilter.record(.hold)))
        expectEqual(try hang(connection.receive(), timeout: patience), [1])
        while connection.isWritable { writes.append(connection.write(measure == .bytes ? pattern(30) : [7])) }
        let writable = connection.writable()
        // An event that makes no room.
        try peer.send(RecordFilter.data([2], at: 1))
        expectEqual(try hang(connection.receive(), timeout: patience), [2])
        expect(!connection.isWritable && writable.isPending && writes.allSatisfy(\.isPending))
        if measure == .memory { expectEqual(code(connection.write("x")), ENOBUFS) }
        budget.remaining = .max
        if place != .kernel { try peer.send(RecordFilter.record(.release)) }
        try hang(writable, timeout: patience)
        try hang(when(fulfilled: writes), timeout: patience)
        expect(connection.isWritable && connection.queuedBytes == 0)
    }

    /// Output of deferred writes, and of no write.
    @Test(.filteredPair, arguments: [true, false]) func outputThatInputCausesCountsLikeThatOfAWrite(isOfWrite: Bool)
        throws
    {
        connection.writeWatermarks = (low: 10, high: 105)
        try peer.send(RecordFilter.data([1]) + (isOfWrite ? RecordFilter.record(.hold) : []))
        expectEqual(try hang(connection.receive(), timeout: patience), [1])
        let budget = net.limitSends(to: 0)
        let write = isOfWrite ? connection.write(pattern(100)) : .value
        expect(connection.isWritable)
        let cause = isOfWrite ? RecordFilter.record(.release) : RecordFilter.pings(21)
        try peer.send(cause + RecordFilter.data([2], at: 1))
        expectEqual(try hang(connection.receive(), timeout: patience), [2])
        expect(connection.queuedBytes == 105 && !connection.isWritable)
        budget.remaining = .max
        try hang(connection.writable(), timeout: patience)
        try hang(write, timeout: patience)
    }

    /// As when each input lets the filter take one of them, and another one follows.
    @Test func deferredWritesThatAreNeverAllTakenUseNoMoreMemory() {
        /// The number of elements of all arrays in a value.
        func stored(_ value: Any) -> Int {
            let mirror = Mirror(reflecting: value)
            if mirror.displayStyle == .collection { return mirror.children.count }
            return mirror.children.reduce(0) { $0 + stored($1.value) }
        }
        var deferred = DeferredWrites()
        for number in 0..<1000 {
            deferred.append(([UInt8](repeating: 1, count: number % 3), Promise<Void>.value.core))
            // The filter needs more input for the first one.
            if number > 0, let first = deferred.takeFirst() { deferred.insertFirst(first) }
            if number > 3 { expectEqual(deferred.takeFirst()?.bytes.count, (number - 4) % 3) }
        }
        expect(deferred.count == 4 && deferred.byteCount == deferred.takeAll().reduce(0) { $0 + $1.bytes.count })
        expect(deferred.isEmpty && deferred.weight == 0)
        for _ in 0..<1000 {
            deferred.append(([1], Promise<Void>.value.core))
            if deferred.count > 3 { _ = deferred.takeFirst() }
        }
        expect(stored(deferred) < 200)
    }
}
