import Reactor
import Synchronization

/// Pending promises made by the same lines, in chains made by the same lines.
package struct PromiseGroup: Sendable {
    package enum Loss: String, Sendable {
        case loopEnded = "its loop has ended"
        case circle = "they wait for each other"
    }

    /// The index of the group that these wait for.
    package let parent: Int?
    package let operation: String
    package let callSite: CallSite?
    package let name: String?
    package let type: Any.Type?
    /// Zero for promises on another loop.
    package internal(set) var count = 0
    /// The earliest and the latest creation, in monotonic time.
    package internal(set) var oldest = Int64.max
    package internal(set) var youngest = Int64.min
    /// The oldest promise's work, for the root of a tree.
    package internal(set) var work: PromiseWork?
    package internal(set) var loss: Loss?
}

/// Lists a loop's recorded pending promises as trees of waiting groups. Reads one part of the table at a time, each
/// under the lock.
package final class PromiseWalk {
    package private(set) var groups: [PromiseGroup] = []
    /// Visited promises that are pending.
    package private(set) var pending = 0
    /// Visited parts, which have about equally many records.
    package private(set) var part = 0
    package static var partCount: Int { TraceRegistry.TracedPromises.partCount }
    /// The most groups. Promises in further groups are only counted.
    private static var mostGroups: Int { 2000 }
    /// The longest path. A longer chain begins anew.
    private static var mostSteps: Int { 200 }
    package private(set) var ungrouped = 0

    private struct GroupKey: Hashable {
        let parent: Int16
        let operation: StaticText?
        let callSite: CallSite?
        let name: String?
    }

    private let isMine: (Int) -> Bool
    private var left = 0
    private let hasEnded: Bool
    private let input: (UnsafeMutableRawPointer) -> String?
    private var indices: [GroupKey: Int16] = [:]
    /// The records from the current one to the root of its tree, or to a record with a group.
    private var path: [TraceRecord] = []
    /// Distinguishes its marks of records. A table of a million marks could not grow in a short time.
    private let number = walks.wrappingAdd(1, ordering: .relaxed).newValue
    private static let walks = Atomic<UInt32>(0)

    // Marks and parents that are no groups.
    private static var root: Int16 { -1 }
    private static var ungrouped: Int16 { -2 }
    private static var onPath: Int16 { -3 }

    /// Lists the promises of this thread's loop.
    /// - Parameter input: describes the input that the promise at an address waits for. Called under the lock.
    package init(on loop: EventLoop, input: @escaping (UnsafeMutableRawPointer) -> String?) {
        let serial = loop.serial
        isMine = { $0 == serial }
        hasEnded = false
        self.input = input
    }

    /// Lists the promises on ended loops. Any thread.
    package init(except living: Set<Int>) {
        isMine = { $0 != 0 && !living.contains($0) }
        hasEnded = true
        input = { _ in nil }
    }

    /// - Returns: false at the end.
    package func advance() -> Bool {
        guard part < Self.partCount else { return false }
        TraceRegistry.withLock { table in
            if part == 0 { left = table.counts.reduce(0) { isMine($1.key) ? $0 + $1.value : $0 } }
            // The remaining parts have no record, unless one was made since.
            if left <= 0 { return part = Self.partCount }
            var roots = Roots()
            for record in table.records(ofPart: part) where isMine(record.loop) {
                left -= 1
                if !record.isPending(&roots) { continue }
                pending += 1
                let group = group(of: record, table, &roots)
                if group >= 0 { count(record, in: Int(group)) } else { ungrouped += 1 }
            }
        }
        part = min(part + 1, Self.partCount)
        return true
    }

    private func count(_ record: TraceRecord, in group: Int) {
        groups[group].count += 1
        groups[group].oldest = min(groups[group].oldest, record.made)
        groups[group].youngest = max(groups[group].youngest, record.made)
    }

    /// The group of a pending record, after the groups of the records that it waits for, or `ungrouped`.
    private func group(
        of record: TraceRecord, _ table: TraceRegistry.TracedPromises, _ roots: inout Roots
    ) -> Int16 {
        var parent = Self.root
        var work = PromiseWork.unknown
        var loss = hasEnded ? PromiseGroup.Loss.loopEnded : nil
        var next: TraceRecord? = record
        while let record = next, path.count < Self.mostSteps {
            if record.mark.walk == number {
                if record.mark.group == Self.onPath { loss = .circle } else { parent = record.mark.group }
                break
            }
            record.mark = (Self.onPath, number)
            path.append(record)
            (next, work) = wait(of: record, table, &roots)
        }
        while let record = path.popLast() {
            if parent != Self.ungrouped { parent = add(record, to: parent, work, loss) }
            record.mark = (parent, number)
        }
        return parent
    }

    /// - Returns: the group of a record that waits for a record of the group `parent`, or `ungrouped`.
    private func add(
        _ record: TraceRecord, to parent: Int16, _ work: PromiseWork, _ loss: PromiseGroup.Loss?
    ) -> Int16 {
        let key = GroupKey(
            parent: parent, operation: record.step?.operation, callSite: record.step?.callSite, name: record.name)
        let group = indices[key] ?? makeGroup(record, key)
        if group == Self.ungrouped { return group }
        if parent == Self.root, record.made < groups[Int(group)].oldest {
            groups[Int(group)].work = record.core.flatMap { input($0.address) }.map { .input($0) } ?? work
        }
        if let loss { groups[Int(group)].loss = loss }
        return group
    }

    private func makeGroup(_ record: TraceRecord, _ key: GroupKey) -> Int16 {
        guard groups.count < Self.mostGroups else { return Self.ungrouped }
        let callSite = record.step.flatMap { $0.callSite.isKnown ? $0.callSite : nil }
        groups.append(
            PromiseGroup(
                parent: key.parent == Self.root ? nil : Int(key.parent),
                operation: record.step?.operation.text ?? "promise", callSite: callSite, name: record.name,
                type: record.type))
        indices[key] = Int16(groups.count - 1)
        return Int16(groups.count - 1)
    }

    private func wait(
        of record: TraceRecord, _ table: TraceRegistry.TracedPromises, _ roots: inout Roots
    ) -> (TraceRecord?, PromiseWork) {
        var work = PromiseWork.unknown
        if let core = record.core, isMine(record.loop), !hasEnded {
            let wait = table.wait(of: core)
            if let source = wait.source, source.isPending(&roots) { return (source, wait.work) }
            work = wait.work
        }
        if let awaited = record.awaited, awaited.isPending(&roots) { return (awaited, work) }
        if let parent = record.parent, parent.isPending(&roots) { return (parent, work) }
        if case .untraced = work { work = .untraced(record.parent?.core == nil ? nil : record.parent?.callSite) }
        return (nil, work)
    }
}

package struct RecordedStep: Sendable {
    package let operation: String?
    package let callSite: CallSite?
    package let name: String?
    package let number: Int
    package let source: Int?

    /// - Parameter subject: from a recording; the result is `nil` if it is no promise.
    package init?(_ subject: (any AnyObject & Sendable)?) {
        guard let record = subject as? TraceRecord else { return nil }
        operation = record.step?.operation.text
        callSite = record.step.flatMap { $0.callSite.isKnown ? $0.callSite : nil }
        name = TraceRegistry.withLock { _ in record.name }
        number = record.ordinal
        source = record.parent?.ordinal
    }
}
