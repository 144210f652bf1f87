import CLinux
import ReactorLibc

/// An epoll descriptor's simulated part: an interest list, and a ready list in the kernel's order.
///
/// As in the kernel, a file's change appends its registration to the ready list. A registration that is reported while
/// its file is still ready goes to the end. See epoll(7).
final class SimulatedEpoll {
    final class Registration {
        let epoll: SimulatedEpoll
        /// The file, which exists until the registration is removed.
        unowned let file: SimulatedFile
        var mask: UInt32
        var data: UInt64
        var isQueued = false
        var isRemoved = false

        init(_ epoll: SimulatedEpoll, _ file: SimulatedFile, _ event: epoll_event) {
            self.epoll = epoll
            self.file = file
            mask = event.events | SimulatedFile.alwaysReported
            data = event.data.u64
        }

        /// The wanted events for which the file is ready.
        var ready: UInt32 { file.readiness & mask }

        func enqueue() {
            if isQueued || epoll.isClosed { return }
            isQueued = true
            epoll.queue.append(self)
        }
    }

    @exclusivity(unchecked) private var queue: [Registration] = []
    private var isClosed = false
    /// The number of the loop's real descriptors in the kernel's own interest list, without the one that wakes the
    /// loop.
    @exclusivity(unchecked) var realRegistrations = 0

    /// True when a wait would report an event at once.
    var isReady: Bool {
        while let first = queue.first {
            if !first.isRemoved && first.ready != 0 { return true }
            first.isQueued = false
            queue.removeFirst()
        }
        return false
    }

    func close() {
        isClosed = true
        queue = []
    }

    func control(_ operation: CInt, _ file: SimulatedFile, _ event: epoll_event) -> Int {
        let index = file.registrations.firstIndex { $0.epoll === self }
        switch operation {
        case EPOLL_CTL_ADD:
            if index != nil { return -Int(EEXIST) }
            let registration = Registration(self, file, event)
            file.registrations.append(registration)
            if registration.ready != 0 { registration.enqueue() }
        case EPOLL_CTL_MOD:
            guard let index else { return -Int(ENOENT) }
            let registration = file.registrations[index]
            registration.mask = event.events | SimulatedFile.alwaysReported
            registration.data = event.data.u64
            if registration.ready != 0 { registration.enqueue() }
        case EPOLL_CTL_DEL:
            guard let index else { return -Int(ENOENT) }
            file.registrations.remove(at: index).isRemoved = true
        default: return -Int(EINVAL)
        }
        return 0
    }

    /// Reports at most `count` events, without waiting.
    func take(into events: UnsafeMutablePointer<epoll_event>, _ count: Int) -> Int {
        if queue.isEmpty { return 0 }
        var reported = 0
        var taken = 0
        var again: [Registration] = []
        while taken < queue.count, reported < count {
            let registration = queue[taken]
            taken += 1
            registration.isQueued = false
            if registration.isRemoved { continue }
            let ready = registration.ready
            if ready == 0 { continue }
            events[reported] = clinux_epoll_event(ready, registration.data)
            reported += 1
            // With EPOLLET, the next report follows a change.
            if registration.mask & UInt32(clinux_EPOLLET) != 0 { continue }
            registration.isQueued = true
            again.append(registration)
        }
        queue.removeFirst(taken)
        queue += again
        return reported
    }
}
