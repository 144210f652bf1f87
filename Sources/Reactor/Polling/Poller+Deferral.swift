import CLinux
import ReactorLibc

/// Registrations deferred because the kernel has no room, or because the handler did not act on the reported readiness.
extension Poller {
    /// Stores the interest for `registerDeferred` to register.
    /// - Returns: the previous handler; see `set`.
    mutating func setDeferredInterest(
        _ interest: Interest, of fd: CInt, handler: (any ReadinessHandler)?
    ) -> (any ReadinessHandler)? {
        if Int(fd) >= slots.count { grow(toHold: Int(fd)) }
        deferred.insert(fd)
        return set(interest.rawValue, Int(fd), handler)
    }

    /// Removes the registration of `fd` until `registerDeferred`, even if the interest is set earlier.
    mutating func suspend(_ fd: CInt, _ kernel: CountingSyscalls) {
        let index = Int(fd)
        guard index < slots.count else { return }
        if slots[index].registered != 0 {
            _ = kernel.epollControl(descriptor, EPOLL_CTL_DEL, fd, epoll_event())
            slots[index].registered = 0
        }
        deferred.insert(fd)
    }

    /// Registers the deferred interests, until the kernel has no room. If the kernel refuses one for another reason,
    /// returns its handler as ready, so that the handler's own call reports the error.
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
