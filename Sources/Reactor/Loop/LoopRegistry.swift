import CLinux

/// The living loops by serial number, for handles that do not retain their loop.
///
/// Invariant: a loop is added and removed on its own thread, and lives in between. So a thread's own loops cannot end
/// while the thread uses them. Of other loops, it knows only that they live.
enum LoopRegistry {
    private static let loops = LockedValue<[Int: Unmanaged<EventLoop>]>.ofProcess([:])

    /// Makes the calling thread its owner.
    static func add(_ loop: EventLoop) {
        loop.shared.life.setOwner()
        loops.withLock { $0[loop.serial] = .passUnretained(loop) }
    }

    static func remove(_ loop: EventLoop) { loops.withLock { $0[loop.serial] = nil } }

    /// Any thread.
    static var all: [(serial: Int, remote: LoopRemote)] {
        loops.withLock { loops in
            loops.map { serial, loop in (serial, loop._withUnsafeGuaranteedRef { LoopRemote(of: $0) }) }
        }
    }

    /// Wakes the loops on library threads, which then block unwatched signals. Any thread.
    static func wakeSpawned() {
        loops.withLock { loops in
            for loop in loops.values {
                loop._withUnsafeGuaranteedRef { loop in
                    if !loop.isSpawned { return }
                    let job = Unmanaged<Job>.passRetained(InternalJob {})
                    if !loop.post(job) { job.release() }
                }
            }
        }
    }

    /// Returns the living loop with this number, which must belong to the calling thread.
    /// - Returns: `nil` if it has ended. Traps if it belongs to another thread.
    static func find(_ serial: Int, _ call: StaticString) -> Unmanaged<EventLoop>? {
        loops.withLock { loops in
            guard let loop = loops[serial] else { return nil }
            loop._withUnsafeGuaranteedRef { $0.requireOwner(call) }
            return loop
        }
    }
}

extension EventLoop {
    /// In order of their numbers. Any thread.
    package static var living: [(serial: Int, remote: LoopRemote)] { LoopRegistry.all }

    /// Calls `body` with this loop. Traps in every build if the loop belongs to another thread.
    /// - Parameter ended: the result if the loop has ended.
    @inline(__always)
    static func withLiving<Value>(
        _ serial: Int, else ended: Value, _ call: StaticString = #function, _ body: (EventLoop) -> Value
    ) -> Value {
        // A thread's current loop is alive.
        if let current = clinux_get_current_loop() {
            let loop = Unmanaged<EventLoop>.fromOpaque(current)
            if loop._withUnsafeGuaranteedRef({ $0.serial == serial }) { return loop._withUnsafeGuaranteedRef(body) }
        }
        return LoopRegistry.find(serial, call)?._withUnsafeGuaranteedRef(body) ?? ended
    }
}
