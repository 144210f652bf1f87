/// The loop's timers: a four-ary heap of deadlines over a table of slots.
///
/// Why a heap and not a wheel: starting and cancelling 200,000 outstanding timers takes about the same time in both, as
/// measured, and a heap keeps nanoseconds where a wheel rounds to its tick. Why four children: the heap is half as
/// deep, and the children of a node share a cache line. A slot stores its place in the heap, so that cancelling is
/// O(log n) and releases the closure at once instead of leaving a dead entry behind.
package struct TimerHeap: ~Copyable {
    struct Entry {
        var deadline: Int64
        var sequence: UInt64
        var slot: UInt32

        /// Timers with equal deadlines fire in the order of their creation.
        func isBefore(_ other: Entry) -> Bool {
            deadline != other.deadline ? deadline < other.deadline : sequence < other.sequence
        }
    }

    struct Slot {
        var job: Job?
        var interval: Int64
        var generation: UInt32
        // The place in the heap; for a free slot, the next free slot.
        var index: Int32
        var isReferenced: Bool
    }

    private var heap = UncheckedArray<Entry>()
    private var slots = UncheckedArray<Slot>()
    private var firstFree: Int32 = -1
    private var nextSequence: UInt64 = 0
    /// The number of timers that keep the loop alive.
    package private(set) var referenced = 0

    package init() {}

    package var count: Int { heap.count }
    package var isEmpty: Bool { heap.isEmpty }
    package var nextDeadline: Int64? { heap.isEmpty ? nil : heap[0].deadline }
    /// Timers started from now on have this sequence or a later one.
    package var horizon: UInt64 { nextSequence }

    /// Starts a timer and returns its id: the generation in the high half, the slot in the low half. The timer repeats
    /// if `interval` is above zero.
    package mutating func insert(deadline: Int64, interval: Int64, job: Job) -> UInt64 {
        let slot = takeSlot()
        slots[slot].job = job
        slots[slot].interval = interval
        slots[slot].isReferenced = true
        let generation = slots[slot].generation
        referenced += 1
        push(deadline, slot)
        return UInt64(generation) << 32 | UInt64(slot)
    }

    /// Ends the timer and returns its job, which the caller releases when the heap is consistent again. Returns nil if
    /// the timer has ended already.
    package mutating func remove(_ id: UInt64) -> Job? {
        guard let slot = slot(of: id) else { return nil }
        removeEntry(at: Int(slots[slot].index))
        return release(slot)
    }

    package func contains(_ id: UInt64) -> Bool { slot(of: id) != nil }

    /// Moves the timer to another deadline. Returns false if it has ended.
    package mutating func move(_ id: UInt64, to deadline: Int64) -> Bool {
        guard let slot = slot(of: id) else { return false }
        removeEntry(at: Int(slots[slot].index))
        push(deadline, slot)
        return true
    }

    package mutating func setReferenced(_ id: UInt64, _ isReferenced: Bool) {
        guard let slot = slot(of: id), slots[slot].isReferenced != isReferenced else { return }
        slots[slot].isReferenced = isReferenced
        referenced += isReferenced ? 1 : -1
    }

    /// Removes the first timer that is due by `now` and was started before `horizon`, and returns its job. A timer that
    /// was started by its own batch waits for the next batch. A repeating timer is put back on its grid, after the
    /// missed ticks.
    package mutating func popDue(_ now: Int64, startedBefore horizon: UInt64) -> Job? {
        guard !heap.isEmpty, heap[0].deadline <= now, heap[0].sequence < horizon else { return nil }
        let first = heap[0]
        removeEntry(at: 0)
        let slot = Int(first.slot)
        let interval = slots[slot].interval
        guard interval > 0 else { return release(slot) }
        let (late, overflow) = now.subtractingReportingOverflow(first.deadline)
        let missed = (overflow ? .max : late) / interval
        push(first.deadline.addingSaturating(missed.addingSaturating(1).multipliedSaturating(by: interval)), slot)
        return slots[slot].job
    }

    /// Ends every timer and returns their jobs.
    package mutating func removeAll() -> [Job] {
        var jobs: [Job] = []
        while !heap.isEmpty {
            let slot = Int(heap[0].slot)
            removeEntry(at: 0)
            if let job = release(slot) { jobs.append(job) }
        }
        return jobs
    }

    // MARK: Slots

    private func slot(of id: UInt64) -> Int? {
        let slot = Int(id & 0xFFFF_FFFF)
        guard slot < slots.count, slots[slot].generation == UInt32(id >> 32), slots[slot].job != nil else { return nil }
        return slot
    }

    private mutating func takeSlot() -> Int {
        guard firstFree >= 0 else {
            slots.append(Slot(job: nil, interval: 0, generation: 0, index: 0, isReferenced: false))
            return slots.count - 1
        }
        let slot = Int(firstFree)
        firstFree = slots[slot].index
        return slot
    }

    private mutating func release(_ slot: Int) -> Job? {
        let job = slots[slot].job.take()
        slots[slot].generation &+= 1
        slots[slot].index = firstFree
        firstFree = Int32(slot)
        if slots[slot].isReferenced { referenced -= 1 }
        return job
    }

    // MARK: Heap

    private mutating func push(_ deadline: Int64, _ slot: Int) {
        let entry = Entry(deadline: deadline, sequence: nextSequence, slot: UInt32(slot))
        nextSequence += 1
        heap.append(entry)
        siftUp(entry, heap.count - 1)
    }

    private mutating func removeEntry(at index: Int) {
        let last = heap.removeLast()
        guard index < heap.count else { return }
        if index > 0, last.isBefore(heap[(index - 1) / 4]) { siftUp(last, index) } else { siftDown(last, index) }
    }

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

    private mutating func place(_ entry: Entry, _ index: Int) {
        heap[index] = entry
        slots[Int(entry.slot)].index = Int32(index)
    }
}

extension Int64 {
    fileprivate func multipliedSaturating(by other: Int64) -> Int64 {
        let (product, overflow) = multipliedReportingOverflow(by: other)
        return overflow ? .max : product
    }
}
