import Synchronization

/// An object that a console shows. It adds itself to `InspectedObjects`, and its `deinit` removes it.
package protocol Inspected: AnyObject {
    /// The facts to show. Called on the thread of the object's loop, if it has one, under the table's lock. Must not
    /// call foreign code, keep references, or add or remove objects.
    var facts: [InspectedFacts] { get }
}

/// Numbers about an object with a limit and a queue, such as a pool, limiter or listener.
package struct InspectedFacts: Sendable {
    package enum Form: String, Sendable {
        case pool, limiter, memory, listener
        case threadPool = "thread pool"
    }

    package let form: Form
    package var name: String
    package var callSite: CallSite?
    package var limit: Int?
    package var inUse: Int
    package var free: Int?
    package var waiting: Int
    /// The nanoseconds that the oldest waiter has waited, if known.
    package var oldestWaiter: Int64?
    package var ends: InspectedEnds?
    /// Numbers that only this type of object has.
    package var others: [(name: String, value: Int)] = []
    package var state: String?
    /// Identifies the listener to a console.
    package var identity: ObjectIdentifier?

    package init(
        _ form: Form, _ name: String, limit: Int?, inUse: Int, free: Int? = nil, waiting: Int = 0,
        oldestWaiter: Int64? = nil
    ) {
        (self.form, self.name, self.limit, self.inUse) = (form, name, limit, inUse)
        (self.free, self.waiting, self.oldestWaiter) = (free, waiting, oldestWaiter)
    }
}

/// The ended uses of an object: their number, and the console's second of the last one, or of the beginning.
package struct InspectedEnds: Sendable {
    package private(set) var count = 0
    package private(set) var last = InspectedObjects.second
    package init() {}

    package mutating func add() {
        count &+= 1
        last = InspectedObjects.second
    }
}

/// The objects, few since a program makes them with its parts. Under the table's lock any may be read, since its
/// `deinit` needs the lock to remove it.
package enum InspectedObjects {
    // Not weak, which would slow down every retain and release of the object.
    private struct Entry {
        unowned(unsafe) let object: any Inspected
        let loop: Int
    }

    // @unchecked Sendable: each object is read on its loop's thread.
    private struct Table: @unchecked Sendable {
        var entries: [ObjectIdentifier: Entry] = [:]
    }

    private static let table = LockedValue.ofProcess(Table())

    /// - Parameter loop: the number of the object's loop, or zero if any thread may read it.
    package static func add(_ object: any Inspected, ofLoop loop: Int) {
        table.withLock { $0.entries[ObjectIdentifier(object)] = Entry(object: object, loop: loop) }
    }

    package static func remove(_ object: any Inspected) {
        table.withLock { _ = $0.entries.removeValue(forKey: ObjectIdentifier(object)) }
    }

    /// Returns the facts about all objects of the loop, on its thread. Zero selects the objects that any thread may
    /// read.
    package static func facts(ofLoop loop: Int) -> [InspectedFacts] {
        table.withLock { table in
            table.entries.values.filter { $0.loop == loop }.flatMap { $0.object.facts }
        }
    }

    /// Called on the loop's thread, the only one that releases the objects.
    package static func all<Object: Inspected>(_ type: Object.Type, ofLoop loop: Int) -> [Object] {
        table.withLock { table in table.entries.values.compactMap { $0.loop == loop ? $0.object as? Object : nil } }
    }

    /// The seconds since a console began to watch, for the ages of connections. Zero without a console.
    package static var second: UInt32 {
        @inline(__always) get { seconds.load(ordering: .relaxed) }
        set { seconds.store(newValue, ordering: .relaxed) }
    }
    private static let seconds = Atomic<UInt32>(0)

    /// The nanoseconds since a second; `nil` if a console did not watch then.
    package static func time(since then: UInt32) -> Int64? {
        then == 0 || then > second ? nil : Int64(second - then) * 1_000_000_000
    }
}
