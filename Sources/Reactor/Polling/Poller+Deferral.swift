import CLinux
import Glibc

/// Registrations that are put off: the kernel has no room for them now, or they reported readiness that no call consumed.
extension Poller {
    /// Sets what `fd` waits for, without a registration until `registerDeferred` makes it.
    mutating func setDeferredInterest(_ interest: Interest, of fd: CInt, handler: (any ReadinessHandler)?) {
        if Int(fd) >= slots.count { grow(toHold: Int(fd)) }
        set(interest.rawValue, Int(fd), handler)
        deferred.insert(fd)
    }

    /// Removes the registration of `fd` until `registerDeferred` makes it anew, whatever is set meanwhile.
    mutating func suspend(_ fd: CInt, _ kernel: CountingSyscalls) {
        let index = Int(fd)
        guard index < slots.count else { return }
        if slots[index].registered != 0 {
            _ = kernel.epollControl(descriptor, EPOLL_CTL_DEL, fd, epoll_event())
            slots[index].registered = 0
        }
        deferred.insert(fd)
    }

    /// Makes the registrations that were put off, until the kernel has no room for one: then the rest stay. Of one that
    /// it refuses for another reason the handler is returned as ready, for its own call to report the error.
    mutating func registerDeferred(
        _ kernel: CountingSyscalls
    ) -> (shortage: SystemError?, refused: [(handler: any ReadinessHandler, ready: Interest)]) {
        var refused: [(handler: any ReadinessHandler, ready: Interest)] = []
        for fd in deferred.sorted() {
            let index = Int(fd)
            let wanted = slots[index].wanted
            if wanted & ~slots[index].registered != 0 {
                do throws(SystemError) { try register(index, wanted, kernel) } catch {
                    if error.isShortage { return (error, refused) }
                    if let handler = deliver(wanted, index) { refused.append((handler, Interest(rawValue: wanted))) }
                }
            }
            deferred.remove(fd)
        }
        return (nil, refused)
    }
}
