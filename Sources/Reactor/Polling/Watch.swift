import Glibc

extension EventLoop {
    /// Calls `handler` on this loop whenever `fd` is ready for `interest`, until the watch is cancelled. The handler is
    /// told which part of the interest has come.
    ///
    /// Readiness is level-triggered: it is reported again in each turn until the handler reads, writes, or cancels.
    /// An error or hang-up on the descriptor counts as ready; the handler's own call then learns which. The watch keeps
    /// the loop alive unless it is unreferenced. One watch for reading and one for writing may stand on a
    /// descriptor at a time.
    ///
    /// The descriptor remains the caller's; cancel the watch *before* closing it. If it is closed first, and a copy of it lives
    /// on (dup(2), a child process), the kernel reports the copy under the closed number. The loop ends such a watch after at
    /// most 1,024 events, or when the number is watched again, and reports the first as `LogEvent.staleWatch`.
    ///
    /// - Throws: `SystemError` of `epoll_ctl`: `EPERM` for a descriptor that cannot be polled, such as a
    ///   regular file, `EBADF` for a closed one, `EEXIST` if such a watch stands already, `ENOMEM`, `ENOSPC` at
    ///   `fs.epoll.max_user_watches`; and of the calls that open the loop's own descriptors. See epoll_ctl(2).
    public func watch(
        _ fd: CInt, for interest: Interest, _ handler: @escaping (Interest) -> Void, file: StaticString = #fileID,
        line: UInt = #line
    ) throws(SystemError) -> Watch {
        guard fd >= 0 else { throw SystemError(.epollControl, EBADF, detail: "descriptor \(fd)") }
        guard !interest.isEmpty, interest.isSubset(of: [.reading, .writing]) else {
            throw SystemError(.epollControl, EINVAL, detail: "interest \(interest.rawValue) for descriptor \(fd)")
        }
        // The number may have been closed and opened again since the watch that stands was made.
        if let present = poller.handler(of: fd) as? WatchGroup, isStale(fd) { present.end(on: self) }
        let group = poller.handler(of: fd) as? WatchGroup ?? WatchGroup(fd, self)
        try group.add(interest, handler, CallSite(file, line))
        return Watch(group, interest, group.generation)
    }

    /// A standing watch of a descriptor. Letting go of it does not end it; `cancel()` does.
    public struct Watch {
        private let group: WatchGroup
        private let interest: Interest
        private let generation: Int

        fileprivate init(_ group: WatchGroup, _ interest: Interest, _ generation: Int) {
            self.group = group
            self.interest = interest
            self.generation = generation
        }

        /// Ends the watch and releases its handler. No event that is already on its way is delivered any more. Again:
        /// nothing happens.
        @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
        public func cancel() {
            group.requireOwner()
            group.remove(interest, generation)
        }

        /// Lets the loop end although this watch stands. Counts for the descriptor: both watches of one
        /// descriptor are unreferenced together.
        @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
        public func unref() {
            group.requireOwner()
            group.setReferenced(false)
        }

        /// Makes the watch keep the loop alive again.
        @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
        public func ref() {
            group.requireOwner()
            group.setReferenced(true)
        }
    }
}

/// The watches of one descriptor, which epoll knows but once.
final class WatchGroup: ReadinessHandler {
    private let fd: CInt
    // The loop's poller holds the group while it watches; `Watch` values keep the group but not the loop alive.
    private weak var loop: EventLoop?
    private struct Entry {
        let interest: Interest
        let handler: (Interest) -> Void
        let generation: Int
        let origin: CallSite
    }
    private var interests: [Entry] = []
    private(set) var generation = 0
    private var events = 0

    /// After how many events it is asked whether the descriptor is still open.
    private static var inspection: Int { 1024 }

    init(_ fd: CInt, _ loop: EventLoop) {
        self.fd = fd
        self.loop = loop
    }

    func requireOwner(_ call: StaticString = #function) { loop?.requireOwner(call) }

    private var all: Interest { interests.reduce(into: []) { $0.formUnion($1.interest) } }

    func add(
        _ interest: Interest, _ handler: @escaping (Interest) -> Void, _ origin: CallSite
    ) throws(SystemError) {
        guard all.isDisjoint(with: interest) else {
            throw SystemError(.epollControl, EEXIST, detail: "descriptor \(fd) is watched already")
        }
        try loop?.register(all.union(interest), of: fd, handler: self)
        generation += 1
        interests.append(Entry(interest: interest, handler: handler, generation: generation, origin: origin))
    }

    func remove(_ interest: Interest, _ generation: Int) {
        guard let index = interests.firstIndex(where: { $0.generation == generation }), let loop else { return }
        // Closed without being cancelled first, its number may be another's by now.
        let isOurs = loop.isHandler(self, of: fd)
        // Released when this function ends, when nothing is half changed any more.
        let removed = interests.remove(at: index)
        if interests.isEmpty {
            if isOurs { loop.forget(fd) }
        } else if isOurs {
            // Narrowing an interest makes no system call and so cannot fail.
            try? loop.setInterest(all, of: fd, handler: self)
        }
        withExtendedLifetime(removed) {}
    }

    /// The descriptor was closed before the watches were cancelled.
    func end(on loop: EventLoop) {
        loop.reportStray(fd, interests.first?.origin)
        loop.forget(fd)
        // Released when this function ends, when nothing is half changed any more.
        let removed = interests
        interests = []
        withExtendedLifetime(removed) {}
    }

    func setReferenced(_ isReferenced: Bool) {
        guard !interests.isEmpty, let loop, loop.isHandler(self, of: fd) else { return }
        loop.setReferenced(isReferenced, of: fd)
    }

    func origin(of ready: Interest) -> CallSite? {
        interests.first { !$0.interest.isDisjoint(with: ready) }?.origin
    }

    /// `watch at App/Server.swift:12`
    var label: String { "watch at " + interests.map(\.origin.description).joined(separator: " and at ") }

    /// The handlers go, although a `Watch` may keep the group.
    func loopWillEnd() {
        let removed = interests
        interests = []
        withExtendedLifetime(removed) {}
    }

    func descriptorIsReady(_ ready: Interest) {
        events &+= 1
        if events % Self.inspection == 0, let loop, loop.isStale(fd) { return end(on: loop) }
        // Asks for more before it calls out: a handler may turn the loop and wait for the next event.
        var isRefused = false
        do throws(SystemError) { try loop?.setInterest(all, of: fd, handler: self) } catch { isRefused = true }
        // Closed, which the handlers may learn from their own calls.
        defer { if isRefused, !interests.isEmpty, let loop { end(on: loop) } }
        // A copy, and each checked again: a handler may cancel the other watch or its own.
        for entry in interests {
            let mine = ready.intersection(entry.interest)
            guard !mine.isEmpty, interests.contains(where: { $0.generation == entry.generation }) else { continue }
            entry.handler(mine)
        }
    }
}
