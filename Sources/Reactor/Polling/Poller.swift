import CLinux
import Glibc

/// The epoll side of a loop: its descriptors, their interests, and fetched events.
///
/// Epoll is used level-triggered, with four rules that keep it exact and cheap:
/// - *Interest is for one event.* A reported direction is no longer wanted until the handler asks for it again. A
///   handler is therefore retained exactly while it waits, at the price of one reference count for each message.
/// - *Interest is added at once and dropped late.* A descriptor that no handler waits for stays registered until the
///   kernel reports it anyway; only then is the registration narrowed or removed. A connection that reads, writes, and
///   reads again within one turn, as every echo does, therefore costs no `epoll_ctl` at all.
/// - *No interest, no registration.* When an event without interest arrives, the registration is removed, since even an
///   empty mask still reports EPOLLHUP and EPOLLERR and would make the loop spin.
/// - *An event carries the generation of its registration.* If a descriptor was closed and its number reused within the
///   same batch, the new descriptor never receives the event of the old one.
///
/// The kernel identifies a registration by the number and the open file behind it. If a number is closed before it is
/// forgotten, and a copy of the descriptor lives on, the registration stays, reports events, and cannot be reached any
/// more: it is stale. `next` distinguishes it from events that were merely fetched before their slot changed, and
/// `rebuild` removes it.
package struct Poller: ~Copyable {
    // A slot that has not been used consists of zeros; see `grow`.
    struct Slot {
        var generation: UInt32 = 0
        var registered: UInt32 = 0
        var wanted: UInt32 = 0
        var isUnreferenced = false
        var handler: (any ReadinessHandler)?

        var isReferenced: Bool { !isUnreferenced }
    }

    /// The loop's own descriptors. Generations never reach these values: `following` keeps the last one free.
    package enum OwnDescriptor: UInt64 {
        case mailbox = 0xFFFF_FFFF_0000_0000
        case timer = 0xFFFF_FFFF_0000_0001
        case signals = 0xFFFF_FFFF_0000_0002
        case mainActor = 0xFFFF_FFFF_0000_0003
    }

    /// The largest number of events that one call reports.
    static var capacity: Int { 256 }
    /// The fetched events that have not been delivered. A nested turn delivers them before it fetches more.
    private var undelivered: Range<Int> = 0..<0
    private var events: UnsafeMutablePointer<epoll_event>?
    /// One slot for each descriptor number that has occurred so far. A memory block of its own: an array checks on each
    /// change whether it is shared, several times for each event.
    var slots = UnsafeMutableBufferPointer<Slot>(start: nil, count: 0)
    /// The epoll descriptor; −1 before it is needed.
    package internal(set) var descriptor: CInt = -1
    /// The number of watched descriptors that keep the loop alive.
    package private(set) var referenced = 0
    /// The number of watched descriptors.
    package private(set) var waiting = 0
    /// Descriptors whose registration has been deferred; see `EventLoop.retryRegistrations`.
    var deferred: Set<CInt> = []
    /// Events that belonged to no registration, each seen once so far.
    var unexplained: Set<UInt64> = []
    /// Whether the kernel may have more events than the last `wait` has fetched.
    private(set) var mayHaveMore = false
    /// Whether a signal has interrupted the last `wait`, so that it says nothing about the descriptors.
    private(set) var wasInterrupted = false

    package init() {}

    package var hasUndelivered: Bool { !undelivered.isEmpty }
    var undeliveredCount: Int { undelivered.count }

    /// Opens the epoll descriptor and allocates its buffer, if there is none yet.
    package mutating func open(_ kernel: CountingSyscalls) throws(SystemError) {
        guard descriptor < 0 else { return }
        descriptor = CInt(try kernel.epollCreate().orThrow(.epollCreate))
        events = .allocate(capacity: Self.capacity)
    }

    /// Adds one of the loop's own descriptors, edge-triggered: a counter that is never read reports each new write.
    package mutating func add(_ source: OwnDescriptor, _ fd: CInt, _ kernel: CountingSyscalls) throws(SystemError) {
        let event = clinux_epoll_event(UInt32(clinux_EPOLLIN | clinux_EPOLLET), source.rawValue)
        _ = try add(fd, event, kernel).orThrow(.epollControl)
    }

    /// Sets the interest in `fd`. The handler is retained exactly while the interest is not empty. On an error, for
    /// example EPERM for a regular file, nothing has changed.
    package mutating func setInterest(
        _ interest: Interest, of fd: CInt, handler: (any ReadinessHandler)?, _ kernel: CountingSyscalls
    ) throws(SystemError) {
        let index = Int(fd)
        let wanted = interest.rawValue
        if index >= slots.count {
            // Registered before the table grows, since only the kernel knows which numbers are descriptors at all.
            if wanted != 0 { try register(fd, wanted, generation: 0, over: 0, kernel) }
            grow(toHold: index)
            slots[index].registered = wanted
        } else if slots[index].registered != 0, wanted & ~(slots[index].registered | Self.alwaysReported) == 0 {
            slots[index].registered |= wanted
        } else if wanted & ~slots[index].registered != 0, deferred.isEmpty || !deferred.contains(fd) {
            try register(index, maskToRegister(wanted, over: slots[index].registered), kernel)
        }
        set(wanted, index, handler)
    }

    /// What the kernel reports of every registered descriptor, asked for or not; see epoll_ctl(2).
    private static var alwaysReported: UInt32 { UInt32(clinux_EPOLLERR | clinux_EPOLLHUP) }

    /// A server may ask about the end of its peer during each request, and read between them. Both then stay
    /// registered: a quiet peer costs no `epoll_ctl` for the change. `next` narrows the registration if an event is not
    /// wanted.
    private func maskToRegister(_ wanted: UInt32, over registered: UInt32) -> UInt32 {
        let asksAboutPeer = (wanted | registered) & Interest.peerGone.rawValue != 0
        return asksAboutPeer ? wanted | registered & ~UInt32(clinux_EPOLLOUT) : wanted
    }

    @inline(__always)
    mutating func set(_ wanted: UInt32, _ index: Int, _ handler: (any ReadinessHandler)?) {
        count(index, -1)
        slots[index].wanted = wanted
        slots[index].handler = wanted == 0 ? nil : handler
        count(index, +1)
    }

    mutating func grow(toHold index: Int) {
        // Zeros from the C library: of a large table, the kernel provides the pages when slots in them are used. Memory is
        // there, or the process ends, as it does wherever Swift allocates.
        let capacity = max(index + 1, slots.count * 2)
        let block = calloc(capacity, MemoryLayout<Slot>.stride)!.bindMemory(to: Slot.self, capacity: capacity)
        let grown = UnsafeMutableBufferPointer(start: block, count: capacity)
        _ = grown.moveUpdate(fromContentsOf: slots)
        free(slots.baseAddress)
        slots = grown
    }

    deinit {
        for index in slots.indices where slots[index].handler != nil { slots[index].handler = nil }
        free(slots.baseAddress)
    }

    /// Whether the kernel already reports all of `interest`.
    @inline(__always)
    func isRegistered(_ fd: CInt, for interest: Interest) -> Bool {
        descriptor >= 0 && Int(fd) < slots.count && interest.rawValue & ~slots[Int(fd)].registered == 0
    }

    package func handler(of fd: CInt) -> (any ReadinessHandler)? {
        Int(fd) < slots.count ? slots[Int(fd)].handler : nil
    }

    package mutating func setReferenced(_ isReferenced: Bool, of fd: CInt) {
        let index = Int(fd)
        guard index < slots.count else { return }
        count(index, -1)
        slots[index].isUnreferenced = !isReferenced
        count(index, +1)
    }

    /// Forgets `fd`. Must be called before the descriptor is closed: a copy of it elsewhere (dup, fork) would keep the
    /// registration alive, and nothing could reach it once the number is closed. Without a kernel, only the slot is
    /// forgotten.
    package mutating func forget(_ fd: CInt, _ kernel: CountingSyscalls?) {
        let index = Int(fd)
        guard index < slots.count else { return }
        count(index, -1)
        if let kernel, slots[index].registered != 0 {
            _ = kernel.epollControl(descriptor, EPOLL_CTL_DEL, fd, epoll_event())
        }
        slots[index] = Slot(generation: Self.following(slots[index].generation))
        if !deferred.isEmpty { deferred.remove(fd) }
    }

    /// The generation after this one. The last value is kept free for the loop's own sources.
    private static func following(_ generation: UInt32) -> UInt32 { generation &+ 1 == .max ? 0 : generation &+ 1 }

    mutating func register(_ index: Int, _ mask: UInt32, _ kernel: CountingSyscalls) throws(SystemError) {
        let slot = (generation: slots[index].generation, registered: slots[index].registered)
        do throws(SystemError) {
            try register(CInt(index), mask, generation: slot.generation, over: slot.registered, kernel)
        } catch {
            guard error.code == ENOENT, slot.registered != 0 else { throw error }
            // The number was closed while it was registered, and now refers to another file. That file gets a new
            // generation, since the old registration may live on.
            slots[index].generation = Self.following(slot.generation)
            slots[index].registered = 0
            try register(CInt(index), mask, generation: slots[index].generation, over: 0, kernel)
        }
        slots[index].registered = mask
    }

    func register(
        _ fd: CInt, _ mask: UInt32, generation: UInt32, over present: UInt32, _ kernel: CountingSyscalls
    ) throws(SystemError) {
        let event = clinux_epoll_event(mask, UInt64(generation) << 32 | UInt64(fd))
        let result =
            present == 0 ? add(fd, event, kernel) : kernel.epollControl(descriptor, EPOLL_CTL_MOD, fd, event)
        _ = try result.orThrow(.epollControl, "descriptor \(fd)")
    }

    /// Adds a registration. If a registration could not be removed while its number was closed, and the number refers
    /// to that file again, the old registration is taken over.
    private func add(_ fd: CInt, _ event: epoll_event, _ kernel: CountingSyscalls) -> Int {
        let result = kernel.epollControl(descriptor, EPOLL_CTL_ADD, fd, event)
        return result == -Int(EEXIST) ? kernel.epollControl(descriptor, EPOLL_CTL_MOD, fd, event) : result
    }

    // Unchecked additions: no count exceeds the number of slots.
    @inline(__always)
    private mutating func count(_ index: Int, _ step: Int) {
        guard slots[index].wanted != 0 else { return }
        waiting &+= step
        if slots[index].isReferenced { referenced &+= step }
    }

    /// Polls the kernel, and waits for at most this number of milliseconds; a negative number means forever. There must
    /// be no undelivered events.
    @inline(__always)
    package mutating func wait(_ milliseconds: CInt, _ kernel: CountingSyscalls) throws(SystemError) -> Int {
        let count = kernel.epollWait(descriptor, events!, CInt(Self.capacity), milliseconds)
        mayHaveMore = count == Self.capacity
        wasInterrupted = false
        if count < 0 { return try noteFailure(count) }
        // A wake-up that arrives alone has already had its effect: the wait has ended.
        let isLoneWakeUp = count == 1 && events![0].data.u64 == OwnDescriptor.mailbox.rawValue
        undelivered = 0..<(isLoneWakeUp ? 0 : count)
        return count
    }

    @inline(never)
    private mutating func noteFailure(_ result: Int) throws(SystemError) -> Int {
        guard result == -Int(EINTR) else { return try result.orThrow(.epollWait) }
        mayHaveMore = true
        wasInterrupted = true
        // A signal: the loop looks for it although its write to the eventfd may have failed.
        events![0] = clinux_epoll_event(UInt32(clinux_EPOLLIN), OwnDescriptor.signals.rawValue)
        undelivered = 0..<1
        return 0
    }

    /// Called when some time has passed since the events were fetched.
    mutating func expectMore() { mayHaveMore = true }

    package enum PollEvent {
        case loop(OwnDescriptor)
        case handler(any ReadinessHandler, Interest)
        /// The kernel continues to report this number, whose registration is not in the table.
        case staleRegistration(CInt)
    }

    /// Takes the next event, if it is as expected: exactly what a handler waits for has occurred, and no
    /// error. The slot's reference to the handler passes to the caller. If it returns nil,
    /// nothing has changed, and `next` finds the event. There must be one.
    @inline(__always)
    mutating func takeExpected() -> (handler: any ReadinessHandler, ready: Interest)? {
        // Opened before there can be an event.
        let event = events.unsafelyUnwrapped[undelivered.lowerBound]
        let data = event.data.u64
        guard data < OwnDescriptor.mailbox.rawValue else { return nil }
        // The table has a slot for each registered number, and never shrinks.
        let slot = slots.baseAddress.unsafelyUnwrapped + Int(data & 0xFFFF_FFFF)
        let ready = event.events
        guard slot.pointee.generation == UInt32(truncatingIfNeeded: data >> 32), slot.pointee.wanted == ready,
            slot.pointee.registered & ready == ready, ready & UInt32(clinux_EPOLLERR | clinux_EPOLLHUP) == 0,
            let handler = slot.pointee.handler.take()
        else { return nil }
        undelivered = Range(uncheckedBounds: (undelivered.lowerBound &+ 1, undelivered.upperBound))
        waiting &-= 1
        if slot.pointee.isReferenced { referenced &-= 1 }
        slot.pointee.wanted = 0
        return (handler, Interest(rawValue: ready))
    }

    /// Returns the next event that a handler still waits for. The poller's own state is consistent when this returns,
    /// so the caller may call the handler.
    package mutating func next(_ kernel: CountingSyscalls) -> PollEvent? {
        while !undelivered.isEmpty {
            let event = events![undelivered.lowerBound]
            undelivered = undelivered.dropFirst()
            let data = event.data.u64
            // Compared with one value first, since nearly all events are those of handlers.
            if data >= OwnDescriptor.mailbox.rawValue, let own = OwnDescriptor(rawValue: data) { return .loop(own) }
            let fd = Int(data & 0xFFFF_FFFF)
            guard slots[fd].generation == UInt32(data >> 32), slots[fd].registered != 0 else {
                guard isProvenStale(data) else { continue }
                return .staleRegistration(CInt(fd))
            }
            let wanted = slots[fd].wanted
            let failed = event.events & UInt32(clinux_EPOLLERR | clinux_EPOLLHUP) != 0
            if wanted == 0 {
                _ = kernel.epollControl(descriptor, EPOLL_CTL_DEL, CInt(fd), epoll_event())
                slots[fd].registered = 0
            } else if event.events & slots[fd].registered & ~wanted != 0 {
                // Narrows the registration. If that fails, the event would repeat itself at once; the loop tries again
                // after a pause.
                do throws(SystemError) { try register(fd, wanted, kernel) } catch { suspend(CInt(fd), kernel) }
            }
            let ready = failed ? readyAfterFailure(wanted, event.events) : event.events & wanted
            guard ready != 0, let handler = deliver(ready, fd) else { continue }
            return .handler(handler, Interest(rawValue: ready))
        }
        return nil
    }

    /// An error or a hang-up makes reading and writing ready. Of the events in `Interest.peerGone`, only those that
    /// have occurred are reported.
    @inline(never)
    private func readyAfterFailure(_ wanted: UInt32, _ events: UInt32) -> UInt32 {
        wanted & (events | ~Interest.peerGone.rawValue)
    }

    /// Removes the reported directions from the interest. With the last one, the slot's reference to the handler passes
    /// to the caller.
    mutating func deliver(_ ready: UInt32, _ index: Int) -> (any ReadinessHandler)? {
        count(index, -1)
        slots[index].wanted &= ~ready
        guard slots[index].wanted == 0 else {
            count(index, +1)
            return slots[index].handler
        }
        return slots[index].handler.take()
    }

    /// The watched descriptors, in the order of their numbers.
    func watched() -> [(fd: CInt, interest: Interest, isReferenced: Bool, handler: any ReadinessHandler)] {
        slots.indices.compactMap { index in
            let slot = slots[index]
            guard slot.wanted != 0, let handler = slot.handler else { return nil }
            return (CInt(index), Interest(rawValue: slot.wanted), slot.isReferenced, handler)
        }
    }

    /// Removes all handlers and returns them, for the caller to release when the poller is consistent again.
    package mutating func removeAllHandlers() -> [any ReadinessHandler] {
        var handlers: [any ReadinessHandler] = []
        for index in slots.indices {
            guard let handler = slots[index].handler else { continue }
            handlers.append(handler)
            count(index, -1)
            slots[index].wanted = 0
            slots[index].handler = nil
        }
        return handlers
    }

    package mutating func close(_ kernel: CountingSyscalls) {
        undelivered = 0..<0
        guard descriptor >= 0 else { return }
        kernel.close(descriptor)
        descriptor = -1
        events?.deallocate()
        events = nil
    }
}
