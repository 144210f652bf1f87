import CLinux
import ReactorLibc

extension Poller {
    /// Polls the kernel, and waits at most this many milliseconds, or forever if negative. All events must have been
    /// delivered.
    @inline(__always)
    package mutating func wait(_ milliseconds: CInt, _ kernel: CountingSyscalls) throws(SystemError) -> Int {
        let count = kernel.epollWait(descriptor, events!, CInt(Self.capacity), milliseconds)
        mayHaveMore = count == Self.capacity
        wasInterrupted = false
        if count < 0 { return try noteFailure(count) }
        // A lone wake-up has done its work by ending the wait.
        let isLoneWakeUp = count == 1 && events![0].data.u64 == OwnDescriptor.mailbox.rawValue
        undelivered = 0..<(isLoneWakeUp ? 0 : count)
        return count
    }

    @inline(never)
    private mutating func noteFailure(_ result: Int) throws(SystemError) -> Int {
        guard result == -Int(EINTR) else { return try result.orThrow(.epollWait) }
        mayHaveMore = true
        wasInterrupted = true
        // A signal interrupted the call. The loop checks for signals, even if the signal's write to the eventfd failed.
        events![0] = clinux_epoll_event(UInt32(clinux_EPOLLIN), OwnDescriptor.signals.rawValue)
        undelivered = 0..<1
        return 0
    }

    package enum PollEvent {
        case loop(OwnDescriptor)
        case handler(any ReadinessHandler, Interest, fd: Int)
        /// The kernel keeps reporting this number, but the table has no such registration.
        case staleRegistration(CInt)
    }

    /// Returns the next event, for `take`, if only the awaited direction is ready; otherwise `nil`, and `next` finds
    /// the event. There must be one.
    @inline(__always)
    func expected() -> (slot: UnsafeMutablePointer<Slot>, fd: Int, ready: UInt32)? {
        // Allocated before the first event.
        let event = events.unsafelyUnwrapped[undelivered.lowerBound]
        let data = event.data.u64
        guard data < OwnDescriptor.mailbox.rawValue else { return nil }
        // The table has a slot for each registered number, and never shrinks.
        let fd = Int(data & 0xFFFF_FFFF)
        let slot = slots.baseAddress.unsafelyUnwrapped + fd
        let ready = event.events
        guard slot.pointee.generation == UInt32(truncatingIfNeeded: data >> 32), slot.pointee.wanted == ready,
            slot.pointee.isRegistered(for: ready), ready & UInt32(clinux_EPOLLERR | clinux_EPOLLHUP) == 0
        else { return nil }
        return (slot, fd, ready)
    }

    /// Takes the event that `expected` returned. The caller gets the slot's reference to the handler.
    @inline(__always)
    mutating func take(_ slot: UnsafeMutablePointer<Slot>) -> any ReadinessHandler {
        undelivered = Range(uncheckedBounds: (undelivered.lowerBound &+ 1, undelivered.upperBound))
        waiting &-= 1
        if slot.pointee.isReferenced { referenced &-= 1 }
        slot.pointee.wanted = 0
        // A slot with an interest has a handler.
        return slot.pointee.handler.take().unsafelyUnwrapped
    }

    /// True when the kernel reports `interest` and no handler waits, so `renew` may be called.
    @inline(__always)
    func mayRenew(_ interest: Interest, of fd: Int) -> Bool {
        // The table may have grown.
        let slot = slots.baseAddress.unsafelyUnwrapped + fd
        return slot.pointee.wanted == 0 && slot.pointee.isRegistered(for: interest.rawValue)
    }

    /// Makes `handler` wait for `interest` in `fd` again. Takes over the caller's reference.
    @inline(__always)
    mutating func renew(_ interest: Interest, of fd: Int, _ handler: __owned any ReadinessHandler) {
        let slot = slots.baseAddress.unsafelyUnwrapped + fd
        slot.pointee.wanted = interest.rawValue
        waiting &+= 1
        if slot.pointee.isReferenced { referenced &+= 1 }
        // The slot has no interest, so there is no handler to release.
        withUnsafeMutablePointer(to: &slot.pointee.handler) { $0.initialize(to: handler) }
    }

    /// Returns the next awaited event. The poller is then consistent, so the caller may call the handler.
    package mutating func next(_ kernel: CountingSyscalls) -> PollEvent? {
        while !undelivered.isEmpty {
            let event = events![undelivered.lowerBound]
            undelivered = undelivered.dropFirst()
            let data = event.data.u64
            // A single comparison first, since nearly all events belong to handlers.
            if data >= OwnDescriptor.mailbox.rawValue, let own = OwnDescriptor(rawValue: data) { return .loop(own) }
            let fd = Int(data & 0xFFFF_FFFF)
            guard slots[fd].generation == UInt32(data >> 32), slots[fd].registered != 0 else {
                guard isProvenStale(data) else { continue }
                return .staleRegistration(CInt(fd))
            }
            let wanted = slots[fd].wanted
            if wanted == 0 && isBetweenJobs { continue }
            let failed = event.events & UInt32(clinux_EPOLLERR | clinux_EPOLLHUP) != 0
            if wanted == 0 {
                _ = kernel.epollControl(descriptor, EPOLL_CTL_DEL, CInt(fd), epoll_event())
                slots[fd].registered = 0
            } else if event.events & slots[fd].registered & ~(wanted | Self.alwaysReported) != 0 {
                // Narrows the registration. If that fails, the same event would come again at once, so the loop retries
                // after a pause.
                do throws(SystemError) { try register(fd, wanted, kernel) } catch { suspend(CInt(fd), kernel) }
            }
            let ready = failed ? readyAfterFailure(wanted, event.events) : event.events & wanted
            guard ready != 0, let handler = deliver(ready, fd) else { continue }
            return .handler(handler, Interest(rawValue: ready), fd: fd)
        }
        return nil
    }

    /// An error or hang-up makes reading and writing ready. Events in `Interest.peerGone` are included only if they
    /// occurred.
    @inline(never)
    private func readyAfterFailure(_ wanted: UInt32, _ events: UInt32) -> UInt32 {
        wanted & (events | ~Interest.peerGone.rawValue)
    }

    /// Removes the reported directions from the interest. When none is left, the caller gets the slot's reference to
    /// the handler.
    mutating func deliver(_ ready: UInt32, _ index: Int) -> (any ReadinessHandler)? {
        count(index, -1)
        slots[index].wanted &= ~ready
        guard slots[index].wanted == 0 else {
            count(index, +1)
            return slots[index].handler
        }
        return slots[index].handler.take()
    }
}
