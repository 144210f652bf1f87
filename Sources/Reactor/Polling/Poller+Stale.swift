import CLinux
import ReactorLibc

/// Stale registrations, whose descriptors were closed before `forget`; see `Poller`.
extension Poller {
    /// Returns true if the kernel lacks the table's registration of `fd`: the descriptor was closed without `forget`,
    /// and its number may have been reopened. One system call.
    func isStale(_ fd: CInt, _ kernel: CountingSyscalls) -> Bool {
        let index = Int(fd)
        guard hasRegistration(of: fd) else { return false }
        let event = clinux_epoll_event(
            slots[index].registered, UInt64(slots[index].generation) << 32 | UInt64(fd))
        let result = kernel.epollControl(descriptor, EPOLL_CTL_MOD, fd, event)
        return result == -Int(EBADF) || result == -Int(ENOENT)
    }

    func hasRegistration(of fd: CInt) -> Bool { slots.indices.contains(Int(fd)) && slots[Int(fd)].registered != 0 }

    /// Returns true if an event without a registration in the table proves a stale one. The first is no proof, since
    /// the event may have been fetched before its slot changed. The second is, because generations are not reused.
    @inline(never)
    mutating func isProvenStale(_ event: UInt64) -> Bool {
        if unexplained.remove(event) != nil { return true }
        // A stale registration repeats its event in each batch, so all earlier ones can be forgotten.
        if unexplained.count >= Self.capacity { unexplained.removeAll() }
        unexplained.insert(event)
        return false
    }

    /// Removes a stale registration by its number, provided that the number refers to the registered file and is not
    /// registered for another. Returns the result of epoll_ctl(2).
    func removeStale(_ fd: CInt, _ kernel: CountingSyscalls) -> Int {
        slots[Int(fd)].registered == 0
            ? kernel.epollControl(descriptor, EPOLL_CTL_DEL, fd, epoll_event()) : -Int(EEXIST)
    }

    /// Replaces the epoll descriptor by one with only the table's registrations.
    /// - Returns: false, with nothing changed, if the kernel has no room for another.
    mutating func rebuild(_ own: [(source: OwnDescriptor, fd: CInt)], _ kernel: CountingSyscalls) -> Bool {
        let old = descriptor
        let result = kernel.epollCreate()
        guard result >= 0 else { return false }
        descriptor = CInt(result)
        var lost: [CInt] = []
        do throws(SystemError) {
            for (source, fd) in own { try add(source, fd, kernel) }
            for index in slots.indices where slots[index].registered != 0 {
                let slot = (generation: slots[index].generation, mask: slots[index].registered)
                do throws(SystemError) {
                    try register(CInt(index), slot.mask, generation: slot.generation, over: 0, kernel)
                } catch {
                    if error.isShortage { throw error }
                    lost.append(CInt(index))
                }
            }
        } catch {
            kernel.close(descriptor)
            descriptor = old
            return false
        }
        kernel.close(old)
        unexplained.removeAll()
        // These were also closed without `forget`. Their handlers notice when the loop retries.
        for fd in lost {
            slots[Int(fd)].registered = 0
            deferred.insert(fd)
        }
        return true
    }
}
