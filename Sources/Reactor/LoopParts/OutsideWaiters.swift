import ReactorLibc

/// The waiters of a loop whose promises other threads may settle, so that the loop can withdraw them when it ends. A
/// waiter that only the loop's own jobs, timers and descriptors can settle is not in the table: it is found through
/// those.
///
/// Invariant: used on the loop's thread only. A waiter knows its number. It is in the table from when it is attached
/// until it has arrived on the loop's thread, or has been withdrawn there; it lives at least that long, so the table
/// does not own it.
@usableFromInline
struct OutsideWaiters: ~Copyable {
    // The first `count` places are in use.
    @usableFromInline var places: UnsafeMutablePointer<Unmanaged<Job>>?
    @usableFromInline var count = 0
    /// The current capacity; zero once the loop is ending.
    @usableFromInline var room = 0
    private var isClosed = false

    /// A number has 27 bits, since the layer above packs it with other fields: that many waiters take 13 GB.
    static var largestNumber: Int { 1 << 27 - 1 }

    /// - Returns: the waiter's number, never zero; or zero if there is no room, and the waiter is not added.
    @inlinable @inline(__always)
    mutating func add(_ waiter: Unmanaged<Job>) -> UInt32 {
        if count >= room { return 0 }
        places.unsafelyUnwrapped[count] = waiter
        count &+= 1
        return UInt32(truncatingIfNeeded: count)
    }

    /// - Returns: the waiter that has the number from now on, possibly the removed one itself.
    @inlinable @inline(__always)
    mutating func remove(_ number: UInt32) -> Unmanaged<Job> {
        let places = places.unsafelyUnwrapped
        count &-= 1
        let last = places[count]
        places[Int(truncatingIfNeeded: number) &- 1] = last
        return last
    }

    subscript(number: Int) -> Unmanaged<Job> { places.unsafelyUnwrapped[number - 1] }

    /// The loop is ending: adds no more.
    mutating func close() {
        isClosed = true
        room = 0
    }

    /// Called when the loop is released. (With a deinit here, the optimizer of Swift 6.3.1 fails an assertion.)
    func releaseMemory() { free(places) }

    /// Makes room for another waiter, if there is none.
    /// - Returns: false if the loop is ending.
    mutating func grow() -> Bool {
        if isClosed || count < room { return !isClosed }
        precondition(count < Self.largestNumber, "a loop has 134,217,727 waiters for promises of other threads")
        room = min(max(16, room * 2), Self.largestNumber)
        // If there is no memory, the process ends, as wherever Swift allocates.
        places = realloc(places, room * MemoryLayout<Unmanaged<Job>>.stride)!
            .bindMemory(to: Unmanaged<Job>.self, capacity: room)
        return true
    }
}
