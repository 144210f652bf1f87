import CLinux
import ReactorLibc

/// The epoll side of a loop: its descriptors, their interests, and fetched events.
///
/// Epoll is level-triggered here. Four rules keep the table exact and cheap:
/// - *Interest is for one event.* After a direction is reported, the handler must ask for it again. So a handler is
///   retained exactly while it waits. A message costs one retain, or none if the handler asks by its return value.
/// - *Interest is added at once and dropped late.* A descriptor without a waiting handler stays registered until the
///   kernel reports it. So a connection that reads, writes and reads again within one turn, as an echo does, needs no
///   `epoll_ctl`.
/// - *No interest, no registration.* An event without interest removes the registration, since an empty mask still
///   reports EPOLLHUP and EPOLLERR and would make the loop spin. A poll between jobs is exempt: one of the jobs may
///   read next, and the loop does not wait before they have run.
/// - *An event carries its registration's generation.* If a number is closed and reused within a batch, the new
///   descriptor does not receive the old one's event.
///
/// The kernel identifies a registration by number and open file. If a number is closed without `forget` while a copy of
/// the descriptor lives, the registration keeps reporting events and cannot be removed: it is stale. `next`
/// distinguishes a stale registration's events from events fetched before their slot changed. `rebuild` removes the
/// registration.
package struct Poller: ~Copyable {
    // An unused slot is all zeros; see `grow`. 24 bytes, because each connection has one; the low 14 bits of a mask
    // hold epoll_ctl(2)'s events.
    struct Slot {
        var generation: UInt32 = 0
        private var registeredBits: UInt16 = 0
        private var wantedBits: UInt16 = 0
        var handler: (any ReadinessHandler)?

        private static var unreferencedBit: UInt16 { 1 << 15 }

        init(generation: UInt32 = 0) { self.generation = generation }

        /// Zero without a registration.
        var registered: UInt32 {
            @inline(__always) get { UInt32(registeredBits & ~Self.unreferencedBit) }
            set {
                let mask = UInt16(truncatingIfNeeded: newValue) & ~Self.unreferencedBit
                registeredBits = registeredBits & Self.unreferencedBit | mask
            }
        }

        // No epoll mask has this bit.
        @inline(__always)
        func isRegistered(for mask: UInt32) -> Bool { mask & ~UInt32(registeredBits) == 0 }

        var wanted: UInt32 {
            @inline(__always) get { UInt32(wantedBits) }
            @inline(__always) set { wantedBits = UInt16(truncatingIfNeeded: newValue) }
        }

        var isReferenced: Bool {
            @inline(__always) get { registeredBits & Self.unreferencedBit == 0 }
            set {
                registeredBits =
                    newValue ? registeredBits & ~Self.unreferencedBit : registeredBits | Self.unreferencedBit
            }
        }
    }

    /// The loop's own descriptors. No generation equals these values, because `following` skips the last one.
    package enum OwnDescriptor: UInt64 {
        case mailbox = 0xFFFF_FFFF_0000_0000
        case timer = 0xFFFF_FFFF_0000_0001
        case signals = 0xFFFF_FFFF_0000_0002
        case mainActor = 0xFFFF_FFFF_0000_0003
    }

    static var capacity: Int { 256 }
    /// The fetched, undelivered events. A nested turn delivers them before it fetches more.
    var undelivered: Range<Int> = 0..<0
    var events: UnsafeMutablePointer<epoll_event>?
    /// One slot per descriptor number seen so far. An array would check for sharing several times per event.
    var slots = UnsafeMutableBufferPointer<Slot>(start: nil, count: 0)
    /// The epoll descriptor; −1 before it is needed.
    package internal(set) var descriptor: CInt = -1
    /// Watched descriptors that keep the loop alive.
    package internal(set) var referenced = 0
    package internal(set) var waiting = 0
    /// Descriptors with deferred registrations; see `EventLoop.retryRegistrations`.
    var deferred: Set<CInt> = []
    /// Events that came once without a registration.
    var unexplained: Set<UInt64> = []
    /// True when the kernel may have more events than the last `wait` fetched.
    var mayHaveMore = false
    /// True when jobs remained at the last `wait`, so descriptors without interest stay registered.
    var isBetweenJobs = false
    /// True when a signal interrupted the last `wait`, whose result then says nothing about descriptors.
    var wasInterrupted = false

    package init() {}

    package var hasUndelivered: Bool { !undelivered.isEmpty }
    var undeliveredCount: Int { undelivered.count }

    package mutating func open(_ kernel: CountingSyscalls) throws(SystemError) {
        guard descriptor < 0 else { return }
        descriptor = CInt(try kernel.epollCreate().orThrow(.epollCreate))
        events = .allocate(capacity: Self.capacity)
    }

    /// Adds one of the loop's descriptors, edge-triggered: an eventfd that is never read reports each new write.
    package mutating func add(_ source: OwnDescriptor, _ fd: CInt, _ kernel: CountingSyscalls) throws(SystemError) {
        let event = clinux_epoll_event(UInt32(clinux_EPOLLIN | clinux_EPOLLET), source.rawValue)
        _ = try add(fd, event, kernel).orThrow(.epollControl)
    }

    /// Sets the interest in `fd`. The handler is retained exactly while the interest is not empty. An error, such as
    /// EPERM for a regular file, changes nothing.
    /// - Returns: the previous handler; see `set`.
    package mutating func setInterest(
        _ interest: Interest, of fd: CInt, handler: (any ReadinessHandler)?, _ kernel: CountingSyscalls
    ) throws(SystemError) -> (any ReadinessHandler)? {
        let index = Int(fd)
        let wanted = interest.rawValue
        if index >= slots.count {
            // Registered before the table grows, because only the kernel knows which numbers are descriptors.
            if wanted != 0 { try register(fd, wanted, generation: 0, over: 0, kernel) }
            grow(toHold: index)
            slots[index].registered = wanted
        } else if slots[index].registered != 0, wanted & ~(slots[index].registered | Self.alwaysReported) == 0 {
            slots[index].registered |= wanted
        } else if wanted & ~slots[index].registered != 0, deferred.isEmpty || !deferred.contains(fd) {
            try register(index, maskToRegister(wanted, over: slots[index].registered), kernel)
        }
        return set(wanted, index, handler)
    }

    /// See epoll_ctl(2).
    static var alwaysReported: UInt32 { UInt32(clinux_EPOLLERR | clinux_EPOLLHUP) }

    /// A server may ask during each request whether its peer has gone, and read in between. Both interests stay
    /// registered, so a quiet peer costs no `epoll_ctl`. On an unwanted event, `next` narrows the mask. (Errors and
    /// hang-ups are reported anyway.)
    private func maskToRegister(_ wanted: UInt32, over registered: UInt32) -> UInt32 {
        let asksAboutPeer = (wanted | registered) & Interest.readHangUp.rawValue != 0
        return asksAboutPeer ? wanted | registered & ~UInt32(clinux_EPOLLOUT) : wanted
    }

    /// - Returns: the previous handler, to be released once the poller is consistent, since its `deinit` may use the
    ///   poller.
    @inline(__always)
    mutating func set(_ wanted: UInt32, _ index: Int, _ handler: (any ReadinessHandler)?) -> (any ReadinessHandler)? {
        count(index, -1)
        slots[index].wanted = wanted
        let before = slots[index].handler.take()
        if wanted != 0 { slots[index].handler = handler }
        count(index, +1)
        return before
    }

    mutating func grow(toHold index: Int) {
        // calloc, so that the kernel provides a large table's pages on first use. Without memory the process ends, as
        // everywhere in Swift.
        let capacity = max(index + 1, slots.count * 2)
        let block = calloc(capacity, MemoryLayout<Slot>.stride)!.bindMemory(to: Slot.self, capacity: capacity)
        let grown = UnsafeMutableBufferPointer(start: block, count: capacity)
        _ = grown.moveUpdate(fromContentsOf: slots)
        free(slots.baseAddress)
        slots = grown
    }

    deinit {
        if waiting > 0 { for index in slots.indices where slots[index].handler != nil { slots[index].handler = nil } }
        free(slots.baseAddress)
    }

    @inline(__always)
    func isRegistered(_ fd: CInt, for interest: Interest) -> Bool {
        descriptor >= 0 && Int(fd) < slots.count && slots[Int(fd)].isRegistered(for: interest.rawValue)
    }

    package func handler(of fd: CInt) -> (any ReadinessHandler)? {
        slots.indices.contains(Int(fd)) ? slots[Int(fd)].handler : nil
    }

    package mutating func setReferenced(_ isReferenced: Bool, of fd: CInt) {
        let index = Int(fd)
        guard index < slots.count else { return }
        count(index, -1)
        slots[index].isReferenced = isReferenced
        count(index, +1)
    }

    /// Forgets `fd`. Call it before closing the descriptor: a copy (dup, fork) would keep a registration that cannot be
    /// removed. Without a kernel, forgets only the slot. Returns the previous handler; see `set`.
    package mutating func forget(_ fd: CInt, _ kernel: CountingSyscalls?) -> (any ReadinessHandler)? {
        let index = Int(fd)
        guard index < slots.count else { return nil }
        count(index, -1)
        let before = slots[index].handler.take()
        if let kernel, slots[index].registered != 0 {
            _ = kernel.epollControl(descriptor, EPOLL_CTL_DEL, fd, epoll_event())
        }
        slots[index] = Slot(generation: Self.following(slots[index].generation))
        if !deferred.isEmpty { deferred.remove(fd) }
        return before
    }

    /// Returns the next generation, skipping the value that the loop's own descriptors use.
    private static func following(_ generation: UInt32) -> UInt32 { generation &+ 1 == .max ? 0 : generation &+ 1 }

    mutating func register(_ index: Int, _ mask: UInt32, _ kernel: CountingSyscalls) throws(SystemError) {
        let slot = (generation: slots[index].generation, registered: slots[index].registered)
        do throws(SystemError) {
            try register(CInt(index), mask, generation: slot.generation, over: slot.registered, kernel)
        } catch {
            guard error.code == ENOENT, slot.registered != 0 else { throw error }
            // The number was closed while registered, and refers to another file. The old registration may still exist,
            // so the file gets a new generation.
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

    /// Adds a registration. If the number was closed and refers to the same file again, takes over the old one.
    private func add(_ fd: CInt, _ event: epoll_event, _ kernel: CountingSyscalls) -> Int {
        let result = kernel.epollControl(descriptor, EPOLL_CTL_ADD, fd, event)
        return result == -Int(EEXIST) ? kernel.epollControl(descriptor, EPOLL_CTL_MOD, fd, event) : result
    }

    // Unchecked, since no count exceeds the number of slots.
    @inline(__always)
    mutating func count(_ index: Int, _ step: Int) {
        guard slots[index].wanted != 0 else { return }
        waiting &+= step
        if slots[index].isReferenced { referenced &+= step }
    }

    /// In ascending order.
    func watched() -> [(fd: CInt, interest: Interest, isReferenced: Bool, handler: any ReadinessHandler)] {
        slots.indices.compactMap { index in
            let slot = slots[index]
            guard slot.wanted != 0, let handler = slot.handler else { return nil }
            return (CInt(index), Interest(rawValue: slot.wanted), slot.isReferenced, handler)
        }
    }

    /// Removes and returns all handlers, to be released once the poller is consistent.
    package mutating func removeAllHandlers() -> [any ReadinessHandler] {
        var handlers: [any ReadinessHandler] = []
        for index in slots.indices where waiting > 0 {
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
