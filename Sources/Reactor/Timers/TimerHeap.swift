/// The loop's timers: a four-ary heap of deadlines, and a table of slots.
///
/// With 200,000 outstanding timers, a heap starts and cancels timers as fast as a wheel (measured), and keeps
/// nanoseconds where a wheel rounds to its tick. With four children the heap is half as deep as with two, and siblings
/// share a cache line. A slot knows its place in the heap, so cancellation takes O(log n) and releases the closure at
/// once.
///
/// Reading the clock costs as much as starting and cancelling a timer. So a timer with a delay enters the heap only in
/// `date`. Until then it is one of a few undated timers, and its entry holds the delay instead of the deadline. A timer
/// cancelled before that costs no reading, and the others share one. The reading is later than the start, so no timer
/// fires early.
package struct TimerHeap: ~Copyable {
    struct Entry {
        /// The deadline, or an undated timer's delay.
        var deadline: Int64
        var sequence: UInt64
        var slot: UInt32
        /// True when the timer keeps the loop alive. Kept here because the entry has room for it.
        var isReferenced: Bool

        /// Compares deadlines; equal ones fire in the order of creation.
        @inline(__always)
        func isBefore(_ other: Entry) -> Bool {
            deadline != other.deadline ? deadline < other.deadline : sequence < other.sequence
        }
    }

    /// A timer's action. The slot stores a closure in place, without an allocation.
    package enum Action {
        case closure(() -> Void)
        case job(Job)
    }

    struct TimerSlot {
        /// `nil` in a free slot.
        var action: Action?
        var interval: Int64
        var generation: UInt32
        /// The index in the heap. For an undated timer, the complement of its index among the undated timers; for a
        /// free slot, the next free slot.
        var index: Int32
    }

    /// The most undated timers. Few, so a timer is late by at most the time to start so many.
    private static var mostUndated: Int { 16 }

    // The additions below are unchecked: no table has 2^31 slots, and no process 2^64 timers.
    private var heap = UncheckedArray<Entry>()
    private var undated = UncheckedArray<Entry>(capacity: mostUndated)
    private var slots = UncheckedArray<TimerSlot>()
    private var firstFree: Int32 = -1
    private var nextSequence: UInt64 = 0
    /// Timers that keep the loop alive.
    package private(set) var referenced = 0

    package init() {}

    package var count: Int { heap.count + undated.count }
    package var isEmpty: Bool { heap.isEmpty && undated.isEmpty }
    /// True when `date` must be called before the next deadline is known.
    @inline(__always) package var hasUndated: Bool { !undated.isEmpty }
    /// True when `date` must be called before the next timer with a delay is added.
    @inline(__always) var isFullOfUndated: Bool { undated.count >= Self.mostUndated }

    /// The earliest deadline. There must be no undated timers.
    package var nextDeadline: Int64? {
        assert(!hasUndated)
        return heap.isEmpty ? nil : heap[0].deadline
    }

    /// The earliest deadline that keeps the loop alive, or else of any timer. There must be no undated timers.
    var nearest: Int64? {
        if referenced == 0 { return nextDeadline }
        var nearest = Int64.max
        for index in 0..<heap.count where heap[index].isReferenced { nearest = min(nearest, heap[index].deadline) }
        return nearest
    }

    /// The timers that a turn fires: those started, and due, by the time the turn polled the kernel.
    package struct Due {
        let moment: Int64
        let horizon: UInt64
    }

    /// Returns the timers due at `now`; `nil` without any.
    @inline(__always)
    package func due(at now: Int64) -> Due? {
        guard let next = nextDeadline, next <= now else { return nil }
        return Due(moment: now, horizon: nextSequence)
    }

    /// Starts a timer, which repeats if `interval` is positive. Returns its id: the generation in the high half, the
    /// slot in the low half.
    // Inlined with its common callees, since a program may start and cancel a timer per request.
    @inline(__always)
    mutating func insert(deadline: Int64, interval: Int64, _ action: consuming Action) -> UInt64 {
        let number = takeSlot()
        let slot = slots.address(of: number)
        let generation = slot.pointee.generation
        // A free slot has no action to release.
        slot.initialize(to: TimerSlot(action: consume action, interval: interval, generation: generation, index: 0))
        referenced &+= 1
        push(deadline, number, isReferenced: true)
        return UInt64(generation) << 32 | UInt64(number)
    }

    /// Starts a one-shot timer that fires `delay` after the next `date`. At most `mostUndated` may be undated.
    /// - Returns: the timer's id.
    @inline(__always)
    mutating func insert(delay: Int64, _ action: consuming Action) -> UInt64 {
        let number = takeSlot()
        let slot = slots.address(of: number)
        let generation = slot.pointee.generation
        let index = ~Int32(truncatingIfNeeded: undated.count)
        slot.initialize(to: TimerSlot(action: consume action, interval: 0, generation: generation, index: index))
        referenced &+= 1
        undated.append(entry(delay, number, isReferenced: true))
        return UInt64(generation) << 32 | UInt64(number)
    }

    /// Turns the undated timers' delays into deadlines.
    /// - Parameter now: a clock reading later than the timers' starts.
    @inline(never)
    package mutating func date(at now: Int64) {
        while !undated.isEmpty {
            var entry = undated.removeLast()
            entry.deadline = LoopInstant.deadline(entry.deadline, after: now)
            push(entry)
        }
    }

    /// Ends the timer. Returns its action, which the caller releases once the heap is consistent; `nil` if the timer
    /// has already ended.
    @inline(__always)
    mutating func remove(_ id: UInt64) -> Action? {
        guard let slot = slot(of: id) else { return nil }
        if removeEntry(of: slot).isReferenced { referenced &-= 1 }
        return release(slot)
    }

    package func contains(_ id: UInt64) -> Bool { slot(of: id) != nil }

    /// Returns a dated timer's deadline; `nil` if the timer has ended.
    func deadline(of id: UInt64) -> Int64? {
        guard let index = slot(of: id).map({ slots[$0].index }), index >= 0 else { return nil }
        return heap[Int(index)].deadline
    }

    /// Returns false if the timer has ended.
    package mutating func move(_ id: UInt64, to deadline: Int64) -> Bool {
        guard let slot = slot(of: id) else { return false }
        let isReferenced = removeEntry(of: slot).isReferenced
        push(deadline, slot, isReferenced: isReferenced)
        return true
    }

    package mutating func setReferenced(_ id: UInt64, _ isReferenced: Bool) {
        guard let slot = slot(of: id) else { return }
        let index = Int(slots[slot].index)
        let entry = index < 0 ? undated.address(of: ~index) : heap.address(of: index)
        guard entry.pointee.isReferenced != isReferenced else { return }
        entry.pointee.isReferenced = isReferenced
        referenced &+= isReferenced ? 1 : -1
    }

    /// Returns true if a due timer is left. A timer started by one of these timers waits for the next turn.
    @inline(__always)
    package func hasMore(of due: Due) -> Bool {
        !heap.isEmpty && heap[0].deadline <= due.moment && heap[0].sequence < due.horizon
    }

    /// Removes the first due timer and returns its action. A repeating timer skips missed ticks and returns to its
    /// grid.
    package mutating func popDue(_ due: Due) -> Action? {
        guard hasMore(of: due) else { return nil }
        let first = heap[0]
        removeEntry(at: 0)
        let slot = Int(first.slot)
        let interval = slots[slot].interval
        guard interval > 0 else {
            if first.isReferenced { referenced &-= 1 }
            return release(slot)
        }
        let (late, overflow) = due.moment.subtractingReportingOverflow(first.deadline)
        let missed = (overflow ? .max : late) / interval
        let next = first.deadline.addingSaturating(missed.addingSaturating(1).multipliedSaturating(by: interval))
        push(next, slot, isReferenced: first.isReferenced)
        return slots[slot].action
    }

    package mutating func removeAll() -> [Action] {
        var actions: [Action] = []
        while !heap.isEmpty {
            let slot = Int(heap[0].slot)
            removeEntry(at: 0)
            if let action = release(slot) { actions.append(action) }
        }
        while !undated.isEmpty {
            if let action = release(Int(undated.removeLast().slot)) { actions.append(action) }
        }
        referenced = 0
        return actions
    }

    // MARK: Slots

    @inline(__always)
    private func slot(of id: UInt64) -> Int? {
        let slot = Int(id & 0xFFFF_FFFF)
        guard slot < slots.count, slots[slot].generation == UInt32(id >> 32), slots[slot].action != nil else {
            return nil
        }
        return slot
    }

    @inline(__always)
    private mutating func takeSlot() -> Int {
        guard firstFree >= 0 else { return appendSlot() }
        let slot = Int(firstFree)
        firstFree = slots[slot].index
        return slot
    }

    @inline(never)
    private mutating func appendSlot() -> Int {
        slots.append(TimerSlot(action: nil, interval: 0, generation: 0, index: 0))
        return slots.count - 1
    }

    @inline(__always)
    private mutating func release(_ number: Int) -> Action? {
        let slot = slots.address(of: number)
        let action = slot.pointee.action.take()
        slot.pointee.generation &+= 1
        slot.pointee.index = firstFree
        firstFree = Int32(truncatingIfNeeded: number)
        return action
    }

    // MARK: Heap

    @inline(__always)
    private mutating func entry(_ deadline: Int64, _ slot: Int, isReferenced: Bool) -> Entry {
        defer { nextSequence &+= 1 }
        let slot = UInt32(truncatingIfNeeded: slot)
        return Entry(deadline: deadline, sequence: nextSequence, slot: slot, isReferenced: isReferenced)
    }

    @inline(__always)
    private mutating func push(_ deadline: Int64, _ slot: Int, isReferenced: Bool) {
        push(entry(deadline, slot, isReferenced: isReferenced))
    }

    @inline(__always)
    private mutating func push(_ entry: Entry) {
        let index = heap.count
        heap.append(entry)
        // Most new timers are later than the others.
        if index > 0 && entry.isBefore(heap[(index - 1) / 4]) { return siftUp(entry, index) }
        slots[Int(entry.slot)].index = Int32(truncatingIfNeeded: index)
    }

    @inline(__always)
    private mutating func removeEntry(of slot: Int) -> Entry {
        let index = Int(slots[slot].index)
        if index < 0 { return removeUndated(at: ~index) }
        let entry = heap[index]
        removeEntry(at: index)
        return entry
    }

    @inline(__always)
    private mutating func removeUndated(at index: Int) -> Entry {
        let last = undated.removeLast()
        if index == undated.count { return last }
        let entry = undated[index]
        undated[index] = last
        slots[Int(last.slot)].index = ~Int32(truncatingIfNeeded: index)
        return entry
    }

    @inline(__always)
    private mutating func removeEntry(at index: Int) {
        let last = heap.removeLast()
        if index < heap.count { moveLast(last, to: index) }
    }

    @inline(never)
    private mutating func moveLast(_ last: Entry, to index: Int) {
        if index > 0, last.isBefore(heap[(index - 1) / 4]) { siftUp(last, index) } else { siftDown(last, index) }
    }

    @inline(never)
    private mutating func siftUp(_ entry: Entry, _ start: Int) {
        var index = start
        while index > 0 {
            let parent = (index - 1) / 4
            guard entry.isBefore(heap[parent]) else { break }
            place(heap[parent], index)
            index = parent
        }
        place(entry, index)
    }

    private mutating func siftDown(_ entry: Entry, _ start: Int) {
        var index = start
        while true {
            let first = index * 4 + 1
            guard first < heap.count else { break }
            var least = first
            for child in (first + 1)..<max(first + 1, min(first + 4, heap.count))
            where heap[child].isBefore(heap[least]) {
                least = child
            }
            guard heap[least].isBefore(entry) else { break }
            place(heap[least], index)
            index = least
        }
        place(entry, index)
    }

    @inline(__always)
    private mutating func place(_ entry: Entry, _ index: Int) {
        heap[index] = entry
        slots[Int(entry.slot)].index = Int32(truncatingIfNeeded: index)
    }
}

extension Int64 {
    fileprivate func multipliedSaturating(by other: Int64) -> Int64 {
        let (product, overflow) = multipliedReportingOverflow(by: other)
        return overflow ? .max : product
    }
}
