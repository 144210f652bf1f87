import CLinux
import ReactorLibc

/// Deferred registrations: those that the kernel has no room for now, and those that reported readiness that no call
/// consumed.
extension Poller {
    /// Sets the interest in `fd` without a registration; `registerDeferred` makes it later.
    /// - Returns: the previous handler, as `set`.
    mutating func setDeferredInterest(
        _ interest: Interest, of fd: CInt, handler: (any ReadinessHandler)?
    ) -> (any ReadinessHandler)? {
        if Int(fd) >= slots.count { grow(toHold: Int(fd)) }
        deferred.insert(fd)
        return set(interest.rawValue, Int(fd), handler)
    }

    /// Removes the registration of `fd` until `registerDeferred` makes it again, even if the interest is set meanwhile.
    mutating func suspend(_ fd: CInt, _ kernel: CountingSyscalls) {
        let index = Int(fd)
        guard index < slots.count else { return }
        if slots[index].registered != 0 {
            _ = kernel.epollControl(descriptor, EPOLL_CTL_DEL, fd, epoll_event())
            slots[index].registered = 0
        }
        deferred.insert(fd)
    }

    /// Makes the deferred registrations, until the kernel has no room for one; the rest remain deferred. If the kernel
    /// refuses one for another reason, its handler is returned as ready, so that the handler's own call reports the
    /// error.
    mutating func registerDeferred(
        _ kernel: CountingSyscalls
    ) -> (shortage: SystemError?, refused: [(handler: any ReadinessHandler, ready: Interest, fd: Int)]) {
        var refused: [(handler: any ReadinessHandler, ready: Interest, fd: Int)] = []
        for fd in deferred.sorted() {
            let index = Int(fd)
            let wanted = slots[index].wanted
            if wanted & ~slots[index].registered != 0 {
                do throws(SystemError) { try register(index, wanted, kernel) } catch {
                    if error.isShortage { return (error, refused) }
                    let ready = Interest(rawValue: wanted)
                    if let handler = deliver(wanted, index) { refused.append((handler, ready, index)) }
                }
            }
            deferred.remove(fd)
        }
        return (nil, refused)
    }
}
