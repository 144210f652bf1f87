import Synchronization

/// An object that a console shows, which adds itself to `InspectedObjects`, and removes itself in its `deinit`.
package protocol Inspected: AnyObject {
    /// What it is and has. Called on the thread of its loop, if it has one, under the lock of the table: it calls no
    /// foreign code, retains nothing for longer, and neither adds nor removes an object.
    var facts: [InspectedFacts] { get }
}

/// The numbers of a pool, a limiter, a listener: whatever has a limit and a queue.
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
    /// The time that the first one has waited, in nanoseconds, if that is known.
    package var oldestWaiter: Int64?
    /// The kind's own numbers.
    package var others: [(name: String, value: Int)] = []
    package var state: String?
    /// Distinguishes the listener whose connections say that they are its.
    package var identity: ObjectIdentifier?

    package init(
        _ form: Form, _ name: String, limit: Int?, inUse: Int, free: Int? = nil, waiting: Int = 0,
        oldestWaiter: Int64? = nil
    ) {
        (self.form, self.name, self.limit, self.inUse) = (form, name, limit, inUse)
        (self.free, self.waiting, self.oldestWaiter) = (free, waiting, oldestWaiter)
    }
}

/// The objects that a console shows. They are made rarely: with a program's parts, not with its work.
///
/// An object in the table may be read under its lock: before its `deinit` ends, it removes itself, for which it needs
/// the lock.
package enum InspectedObjects {
    // Not weak: a weak reference would make each count of the object's references slower.
    private struct Entry {
        unowned(unsafe) let object: any Inspected
        let loop: Int
    }

    // @unchecked Sendable: the objects are read on the threads of their loops.
    private struct Table: @unchecked Sendable {
        var entries: [ObjectIdentifier: Entry] = [:]
    }

    private static let table = LockedValue.ofProcess(Table())

    /// - Parameter loop: the number of the loop that the object belongs to; zero if any thread may read it.
    package static func add(_ object: any Inspected, ofLoop loop: Int) {
        table.withLock { $0.entries[ObjectIdentifier(object)] = Entry(object: object, loop: loop) }
    }

    package static func remove(_ object: any Inspected) {
        table.withLock { _ = $0.entries.removeValue(forKey: ObjectIdentifier(object)) }
    }

    /// The facts of all objects of the loop, on its thread; of those without a loop, on any.
    package static func facts(ofLoop loop: Int) -> [InspectedFacts] {
        table.withLock { table in
            table.entries.values.filter { $0.loop == loop }.flatMap { $0.object.facts }
        }
    }

    /// The objects of this class that belong to the loop, on its thread, which is the one that releases them.
    package static func all<Object: Inspected>(_ type: Object.Type, ofLoop loop: Int) -> [Object] {
        table.withLock { table in table.entries.values.compactMap { $0.loop == loop ? $0.object as? Object : nil } }
    }

    /// The seconds for which a console has watched, for the ages of connections; zero without a console, and then nothing has one.
    package static var second: UInt32 {
        @inline(__always) get { seconds.load(ordering: .relaxed) }
        set { seconds.store(newValue, ordering: .relaxed) }
    }
    private static let seconds = Atomic<UInt32>(0)
}
