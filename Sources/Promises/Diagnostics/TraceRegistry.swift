import Reactor

/// The promises' records, by the address of their core, so that a promise without name and trace costs nothing.
///
/// A core whose `annotations` say that it is recorded removes its record before its deinit ends. So a core in the table
/// may be accessed under the lock. No foreign code runs under the lock.
enum TraceRegistry {
    struct TracedPromises {
        /// Split, so that a table with a million records grows, and is listed, a hundred at a time.
        private var parts = ContiguousArray(repeating: [UnsafeMutableRawPointer: TraceRecord](), count: partCount)
        private var ordinal = 0
        private(set) var counts: [Int: Int] = [:]

        static var partCount: Int { 8192 }

        private static func part(of address: UnsafeMutableRawPointer) -> Int {
            // Addresses are multiples of 16, and often of a core's size. The product has no such pattern.
            Int(truncatingIfNeeded: (UInt(bitPattern: address) &* 0x9E37_79B9_7F4A_7C15) >> 51)
        }

        /// Returns the record for the core at that address, which must have one.
        func record(at address: UnsafeMutableRawPointer) -> TraceRecord? { parts[Self.part(of: address)][address] }

        /// Replaces an existing record, keeping its name.
        @discardableResult
        mutating func insert(
            _ core: TracedCore, _ step: (operation: StaticText, callSite: CallSite)?, after parent: TraceRecord?,
            _ type: Any.Type, _ loop: Int
        ) -> TraceRecord {
            ordinal += 1
            let record = TraceRecord(step, after: parent, type: type, loop: loop, ordinal: ordinal)
            record.core = core
            if let old = parts[Self.part(of: core.address)].updateValue(record, forKey: core.address) {
                record.name = old.name
                old.leave()
                counts[old.loop, default: 0] -= 1
            }
            counts[loop, default: 0] += 1
            return record
        }

        fileprivate mutating func remove(at address: UnsafeMutableRawPointer) -> TraceRecord? {
            guard let record = parts[Self.part(of: address)].removeValue(forKey: address) else { return nil }
            let left = counts[record.loop, default: 0] - 1
            counts[record.loop] = left > 0 ? left : nil
            record.leave()
            return record
        }

        fileprivate func records(ofLoop loop: Int) -> [TraceRecord] {
            parts.flatMap { $0.values.filter { $0.loop == loop } }
        }

        func records(ofPart part: Int) -> some Sequence<TraceRecord> { parts[part].values }
    }

    private static let table = LockedValue.ofProcess(TracedPromises())

    static func withLock<Result>(_ body: (inout TracedPromises) -> Result) -> Result { table.withLock(body) }

    /// Removes the record of a core that is being deallocated, before any part of the core is destroyed.
    static func remove(at address: UnsafeMutableRawPointer) -> TraceRecord? { withLock { $0.remove(at: address) } }

    static func provenance(_ record: TraceRecord?, type: String? = nil, callSite: CallSite?) -> Provenance {
        guard let record else { return Provenance(type: type, callSite: callSite) }
        return withLock { _ in
            var roots = Roots()
            return record.provenance(type: type, callSite: callSite, &roots)
        }
    }

    static func pending(ofLoop loop: Int) -> [Provenance] {
        withLock { table in
            // A promise that a handler returned is linked, and each link leads to the last promise. `roots` follows
            // each link once.
            var roots = Roots()
            defer { EventLoop.nodesWereVisited(roots.visited) }
            return table.records(ofLoop: loop).filter { $0.isPending(&roots) }.sorted { $0.ordinal < $1.ordinal }
                .map { $0.provenance(callSite: $0.callSite, &roots) }
        }
    }
}
