import ReactorLibc

/// The waiters whose promises other threads may settle, to be withdrawn when the loop ends. The loop finds other
/// waiters through its jobs, timers and descriptors.
///
/// Invariant: used on the loop's thread only. A waiter knows its number. It is in the table, and lives, from its
/// attachment until it arrives on the loop's thread or is withdrawn there. So the table does not own the waiter.
@usableFromInline
struct CrossThreadWaiters: ~Copyable {
    // The first `count` places are in use.
    @usableFromInline var places: UnsafeMutablePointer<Unmanaged<Job>>?
    @usableFromInline var count = 0
    /// The capacity; zero once the loop is ending.
    @usableFromInline var room = 0
    private var isClosed = false

    /// 27 bits, because the layer above packs a number with other fields. That many waiters take 13 GB.
    static var largestNumber: Int { 1 << 27 - 1 }

    /// - Returns: the waiter's number, or zero if there is no room.
    @inlinable @inline(__always)
    mutating func add(_ waiter: Unmanaged<Job>) -> UInt32 {
        if count >= room { return 0 }
        places.unsafelyUnwrapped[count] = waiter
        count &+= 1
        return UInt32(truncatingIfNeeded: count)
    }

    @inlinable @inline(__always)
    mutating func remove(_ number: UInt32) -> Unmanaged<Job> {
        let places = places.unsafelyUnwrapped
        count &-= 1
        let last = places[count]
        places[Int(truncatingIfNeeded: number) &- 1] = last
        return last
    }

    subscript(number: Int) -> Unmanaged<Job> { places.unsafelyUnwrapped[number - 1] }

    mutating func close() {
        isClosed = true
        room = 0
    }

    /// Called when the loop is released. (A deinit here fails an assertion in Swift 6.3.1's optimizer.)
    func releaseMemory() { free(places) }

    /// - Returns: false if the loop is ending.
    mutating func grow() -> Bool {
        if isClosed || count < room { return !isClosed }
        precondition(count < Self.largestNumber, "a loop has 134,217,727 waiters for promises of other threads")
        room = min(max(16, room * 2), Self.largestNumber)
        // Without memory the process ends, as everywhere in Swift.
        places = realloc(places, room * MemoryLayout<Unmanaged<Job>>.stride)!
            .bindMemory(to: Unmanaged<Job>.self, capacity: room)
        return true
    }
}
