import Reactor

/// Pending promises that were made in the same way: by the same lines, and as parts of chains of the same lines.
package struct PromiseGroup: Sendable {
    /// The reason why the promises will never settle.
    package enum Loss: String, Sendable {
        case loopEnded = "its loop has ended"
        case circle = "they wait for each other"
    }

    /// The index of the group that these promises wait for.
    package let parent: Int?
    package let operation: String
    package let callSite: CallSite?
    package let name: String?
    package let type: String?
    /// Zero for promises of another loop.
    package internal(set) var count = 0
    /// When the oldest and the youngest were made, by the monotonic clock.
    package internal(set) var oldest = Int64.max
    package internal(set) var youngest = Int64.min
    /// The work that the oldest one waits for, at the root of a tree.
    package internal(set) var work: PromiseWork?
    package internal(set) var loss: Loss?
}

/// Lists the recorded pending promises of a loop, grouped into trees of what waits for what: a part of the table of records
/// at a time, each under the lock.
package final class PromiseWalk {
    package private(set) var groups: [PromiseGroup] = []
    /// The promises that were looked at and are pending.
    package private(set) var pending = 0
    /// The parts that were looked at: each has as many records as another one, more or less.
    package private(set) var part = 0
    package static var partCount: Int { TraceRegistry.TracedPromises.partCount }
    /// Groups beyond this are counted only.
    private static var mostGroups: Int { 2000 }
    /// The longest path that is followed: a longer chain begins anew there.
    private static var mostSteps: Int { 200 }
    /// The pending promises that are in no group, because there are too many groups.
    package private(set) var ungrouped = 0

    private struct GroupKey: Hashable {
        let parent: Int
        let operation: StaticText?
        let callSite: CallSite?
        let name: String?
    }

    private let isMine: (Int) -> Bool
    private let hasEnded: Bool
    private let input: (UnsafeMutableRawPointer) -> String?
    private var indices: [GroupKey: Int] = [:]
    /// The groups of records, which it retains so that their addresses stay.
    private var known: [ObjectIdentifier: (record: TraceRecord, group: Int)] = [:]

    /// The promises of this thread's loop.
    /// - Parameter input: the name of the connection whose input the promise of the core at an address waits for.
    package init(on loop: EventLoop, input: @escaping (UnsafeMutableRawPointer) -> String?) {
        let serial = loop.serial
        isMine = { $0 == serial }
        hasEnded = false
        self.input = input
    }

    /// The promises of loops that have ended, on any thread.
    package init(except living: Set<Int>) {
        isMine = { $0 != 0 && !living.contains($0) }
        hasEnded = true
        input = { _ in nil }
    }

    /// The number of all recorded promises, of which some have settled.
    package static var recorded: Int { TraceRegistry.withLock { $0.count } }

    /// Looks at the next part.
    /// - Returns: false at the end.
    package func advance() -> Bool {
        guard part < Self.partCount else { return false }
        TraceRegistry.withLock { table in
            var roots = Roots()
            for record in table.records(ofPart: part) where isMine(record.loop) && record.isPending(&roots) {
                pending += 1
                let group = group(of: record, &table, &roots)
                if group >= 0 { count(record, in: group) } else { ungrouped += 1 }
            }
        }
        part += 1
        return true
    }

    private func count(_ record: TraceRecord, in group: Int) {
        groups[group].count += 1
        groups[group].oldest = min(groups[group].oldest, record.made)
        groups[group].youngest = max(groups[group].youngest, record.made)
    }

    /// The group of a pending record, after those of the records that it waits for, from the root on; −1 if there are too many.
    private func group(of record: TraceRecord, _ table: inout TraceRegistry.TracedPromises, _ roots: inout Roots) -> Int
    {
        if let known = known[ObjectIdentifier(record)] { return known.group }
        var path = [record]
        var onPath: Set<ObjectIdentifier> = [ObjectIdentifier(record)]
        var parent = -1
        var work = PromiseWork.unknown
        var loss = hasEnded ? PromiseGroup.Loss.loopEnded : nil
        while true {
            let next: TraceRecord?
            (next, work) = wait(of: path.last!, table, &roots)
            guard let next, path.count < Self.mostSteps else { break }
            if let known = known[ObjectIdentifier(next)] {
                parent = known.group
                if parent < 0 { return -1 }
                break
            }
            guard onPath.insert(ObjectIdentifier(next)).inserted else {
                loss = .circle
                break
            }
            path.append(next)
        }
        for (index, record) in path.reversed().enumerated() {
            let isRoot = index == 0 && parent < 0
            parent = makeGroup(record, parent)
            known[ObjectIdentifier(record)] = (record, parent)
            if parent < 0 { return -1 }
            if isRoot && record.made < groups[parent].oldest { groups[parent].work = work }
            if let loss { groups[parent].loss = loss }
        }
        return parent
    }

    private func makeGroup(_ record: TraceRecord, _ parent: Int) -> Int {
        let key = GroupKey(
            parent: parent, operation: record.step?.operation, callSite: record.step?.callSite, name: record.name)
        if let known = indices[key] { return known }
        guard groups.count < Self.mostGroups else { return -1 }
        let callSite = record.step.flatMap { $0.callSite.isKnown ? $0.callSite : nil }
        groups.append(
            PromiseGroup(
                parent: parent < 0 ? nil : parent, operation: record.step?.operation.text ?? "promise",
                callSite: callSite, name: record.name, type: record.type.map { "\($0)" }))
        indices[key] = groups.count - 1
        return groups.count - 1
    }

    private func wait(
        of record: TraceRecord, _ table: TraceRegistry.TracedPromises, _ roots: inout Roots
    ) -> (TraceRecord?, PromiseWork) {
        var work = PromiseWork.unknown
        if let core = record.core, isMine(record.loop), !hasEnded {
            let wait = table.wait(of: core)
            if let source = wait.source, source.isPending(&roots) { return (source, wait.work) }
            work = wait.work
            if let connection = input(core.address) { return (nil, .input(connection)) }
        }
        if let awaited = record.awaited, awaited.isPending(&roots) { return (awaited, work) }
        if let parent = record.parent, parent.isPending(&roots) { return (parent, work) }
        if case .untraced = work { work = .untraced(record.parent?.core == nil ? nil : record.parent?.callSite) }
        return (nil, work)
    }
}

/// What a recording shows of a promise's handler.
package struct RecordedStep: Sendable {
    package let operation: String?
    package let callSite: CallSite?
    package let name: String?
    /// The number of the promise, and of the one whose outcome the handler got.
    package let number: Int
    package let source: Int?

    /// - Parameter subject: as in a recording; `nil` if it is no promise.
    package init?(_ subject: (any AnyObject & Sendable)?) {
        guard let record = subject as? TraceRecord else { return nil }
        operation = record.step?.operation.text
        callSite = record.step.flatMap { $0.callSite.isKnown ? $0.callSite : nil }
        name = TraceRegistry.withLock { _ in record.name }
        number = record.ordinal
        source = record.parent?.ordinal
    }
}
