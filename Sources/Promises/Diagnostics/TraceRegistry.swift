import Glibc
import Reactor

/// The records of all promises that have one, by the address of their core. The table is separate from the cores, so
/// that a promise without name and trace has no cost.
///
/// A core whose `annotations` say that it is recorded removes its record before its deinit ends. A core in the table
/// may therefore be accessed under the lock. No foreign code runs under the lock.
enum TraceRegistry {
    // nonisolated(unsafe): accessed only under `lock`, and so never concurrently.
    @exclusivity(unchecked) nonisolated(unsafe) private static var records: [UnsafeMutableRawPointer: TraceRecord] = [:]
    @exclusivity(unchecked) nonisolated(unsafe) private static var ordinal = 0

    // A pthread lock and not a Mutex, because ThreadSanitizer understands it. Allocated, because its address must not
    // change. nonisolated(unsafe): a pthread lock may be used on any thread.
    nonisolated(unsafe) private static let lock: UnsafeMutablePointer<pthread_mutex_t> = {
        let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
        pthread_mutex_init(lock, nil)
        return lock
    }()

    static func withLock<Result>(_ body: () -> Result) -> Result {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        return body()
    }

    private static func address(_ core: PromiseCore) -> UnsafeMutableRawPointer {
        Unmanaged.passUnretained(core).toOpaque()
    }

    static func isRecorded(_ core: PromiseCore) -> Bool {
        core.annotations.load(ordering: .relaxed) & PromiseCore.isRecorded != 0
    }

    private static func record(_ core: PromiseCore) -> TraceRecord? {
        isRecorded(core) ? records[address(core)] : nil
    }

    private static func insert(
        _ core: PromiseCore, _ step: (operation: StaticText, origin: CallSite)?, after parent: TraceRecord?,
        _ type: Any.Type,
        _ loop: Int
    ) -> TraceRecord {
        ordinal += 1
        let record = TraceRecord(step, after: parent, type: type, loop: loop, ordinal: ordinal)
        record.core = .passUnretained(core)
        if let old = records.updateValue(record, forKey: address(core)) {
            record.name = old.name
            old.leave()
        }
        core.annotations.bitwiseOr(PromiseCore.isRecorded, ordering: .relaxed)
        return record
    }

    /// Records how `core` was made. `source` is the promise on which the operator was called, if an operator made it.
    static func add(
        _ core: PromiseCore, after source: PromiseCore?, _ operation: StaticString, _ origin: CallSite, _ type: Any.Type
    ) {
        // The core that all fulfilled promises of Void share has no creation site.
        if core === PromiseCore.void { return }
        let loop = EventLoop.ofCurrentThread.serial
        withLock {
            var parent: TraceRecord?
            if let source {
                parent = record(source)
                if parent == nil, let place = source.creationSite {
                    // The source was made before tracing was turned on.
                    let made = (StaticText(Trace.Step.making), place)
                    parent = TraceRecord(made, after: nil, type: nil, loop: loop, ordinal: 0)
                }
            }
            _ = insert(core, (StaticText(operation), origin), after: parent, type, loop)
        }
    }

    /// Names a promise.
    static func name(_ core: PromiseCore, _ name: String, _ type: Any.Type) {
        if core === PromiseCore.void { return }
        let isHere = core.loop == EventLoop.addressOfThisThread
        let loop = isHere ? EventLoop.ofCurrentThread.serial : 0
        withLock {
            let made = core.creationSite.map { (operation: StaticText(Trace.Step.making), origin: $0) }
            let record = record(core) ?? insert(core, made, after: nil, type, loop)
            record.name = name
        }
    }

    /// Records that `core` now waits for `inner`, which its handler has returned.
    static func adopt(_ core: PromiseCore, _ inner: PromiseCore) {
        let root = core.root
        withLock {
            guard let adopter = record(root), let adopted = record(inner), adopted.isPending, adopter !== adopted else {
                return
            }
            adopter.awaited = adopted
        }
    }

    /// Removes the record of a core that is being deallocated, before any part of the core is destroyed.
    static func remove(_ core: PromiseCore) -> TraceRecord? {
        withLock {
            let record = records.removeValue(forKey: address(core))
            record?.leave()
            return record
        }
    }

    /// The record of `core`, which the caller retains.
    static func record(of core: PromiseCore) -> TraceRecord? {
        guard isRecorded(core) else { return nil }
        // Makes `conf` install its handler; otherwise the report would find none that understands a record.
        _ = conf
        return withLock { record(core) }
    }

    static func provenance(_ core: PromiseCore, type: String?, origin: CallSite?) -> Provenance {
        guard isRecorded(core) else { return Provenance(type: type, origin: origin) }
        return withLock {
            let record = record(core)
            return Provenance(
                name: record?.name, type: type ?? record?.typeName, origin: origin, trace: record?.trace())
        }
    }

    static func provenance(_ record: TraceRecord?, origin: CallSite?) -> Provenance {
        guard let record else { return Provenance(origin: origin) }
        return withLock {
            Provenance(name: record.name, type: record.typeName, origin: origin, trace: record.trace())
        }
    }

    /// The pending promises of a loop, in the order of creation.
    static func pending(ofLoop loop: Int) -> [Provenance] {
        withLock {
            // Promises that handlers have returned one after another are links, each of which leads to the last
            // promise. Each link is followed once.
            var roots = Roots()
            defer { EventLoop.nodesWereVisited(roots.visited) }
            return records.values.filter { $0.loop == loop && $0.isPending(&roots) }.sorted { $0.ordinal < $1.ordinal }
                .map {
                    Provenance(
                        name: $0.name, type: $0.typeName, origin: $0.creationSite, trace: $0.trace(&roots))
                }
        }
    }
}

extension PromiseCore {
    /// Ends a core that `TraceRegistry` knows, or whose call site has been noted. Out of line, so that all other cores
    /// do not pay for it.
    @inline(never)
    func endAnnotated() {
        if annotations.load(ordering: .relaxed) & PromiseCore.isNoted != 0 { leaveUndrivenWork() }
        end(TraceRegistry.isRecorded(self) ? TraceRegistry.remove(self) : nil)
    }

    /// The known facts about this promise. May be called on any thread.
    func provenance(type: String? = nil, origin: CallSite?) -> Provenance {
        TraceRegistry.provenance(self, type: type, origin: origin)
    }
}

extension PromiseCore {
    /// The part of a description before the value: `"login": `
    var label: String { provenance(origin: nil).name.map { "\"\($0)\": " } ?? "" }

    /// The part of a debug description after the value: ` "login" (made at App/Login.swift:12 → …)`
    var remarks: String {
        let known = provenance(origin: nil)
        return (known.name.map { " \"\($0)\"" } ?? "") + (known.trace.map { " (\($0.text(namesLast: false)))" } ?? "")
    }
}
