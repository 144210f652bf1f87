import Glibc

extension EventLoop {
    /// Calls `handler` on this loop whenever `fd` is ready for `interest`, until the watch is cancelled. The handler
    /// gets the part of the interest that is ready.
    ///
    /// Readiness is level-triggered: it is reported again in each turn until the handler reads, writes, or cancels. An
    /// error or hang-up on the descriptor counts as ready; the handler's own system call then reports which. The watch
    /// keeps the loop alive unless it is unreferenced. A descriptor can have one watch for reading and one for writing
    /// at a time.
    ///
    /// The descriptor still belongs to the caller. Cancel the watch *before* closing it. If the descriptor is closed
    /// first, and a copy of it lives on (dup(2), a child process), the kernel reports the copy under the closed number.
    /// The loop ends such a watch after at most 1,024 events, or when the number is watched again, and reports the
    /// first one as `LogEvent.staleWatch`.
    ///
    /// - Parameters:
    ///   - fd: the descriptor.
    ///   - interest: the directions to watch.
    ///   - handler: called on the loop's thread with the directions that are ready.
    /// - Returns: the watch, which `cancel()` ends.
    /// - Throws: `SystemError` of `epoll_ctl`, see epoll_ctl(2), and of the calls that open the loop's own descriptors:
    ///   - `EPERM` for a descriptor that cannot be polled, such as a regular file.
    ///   - `EBADF` for a closed descriptor.
    ///   - `EEXIST` if there is such a watch already.
    ///   - `ENOMEM`, and `ENOSPC` at `fs.epoll.max_user_watches`.
    public func watch(
        _ fd: CInt, for interest: Interest, _ handler: @escaping (Interest) -> Void, file: StaticString = #fileID,
        line: UInt = #line
    ) throws(SystemError) -> Watch {
        guard fd >= 0 else { throw SystemError(.epollControl, EBADF, detail: "descriptor \(fd)") }
        guard !interest.isEmpty, interest.isSubset(of: [.reading, .writing]) else {
            throw SystemError(.epollControl, EINVAL, detail: "interest \(interest.rawValue) for descriptor \(fd)")
        }
        // The number may have been closed and opened again since the existing watch was made.
        if let present = poller.handler(of: fd) as? WatchGroup, isStale(fd) { present.end(on: self) }
        let group = poller.handler(of: fd) as? WatchGroup ?? WatchGroup(fd, self)
        try group.add(interest, handler, CallSite(file, line))
        return Watch(group, interest, group.generation)
    }

    /// A handle to a watch of a descriptor; see `LoopHandle`.
    public struct Watch: LoopHandle {
        private let group: WatchGroup
        private let interest: Interest
        private let generation: Int

        fileprivate init(_ group: WatchGroup, _ interest: Interest, _ generation: Int) {
            self.group = group
            self.interest = interest
            self.generation = generation
        }

        /// Ends the watch and releases its handler. Events that are already on their way are not delivered any more.
        /// - Returns: whether the watch was active.
        @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
        @discardableResult
        public func cancel() -> Bool {
            group.requireOwner()
            return group.remove(interest, generation)
        }

        /// Whether the watch has not ended yet, by `cancel()` or because its descriptor was found to be closed.
        public var isActive: Bool {
            group.requireOwner()
            return group.contains(generation)
        }

        /// Lets the loop end even though this watch is active. This applies to the descriptor: both watches of one
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

/// The watches of one descriptor, which epoll registers only once.
final class WatchGroup: ReadinessHandler {
    private let fd: CInt
    // The loop's poller retains the group while it watches. `Watch` values retain the group, but do not keep the loop
    // alive.
    private weak var loop: EventLoop?
    private struct Entry {
        let interest: Interest
        let handler: (Interest) -> Void
        let generation: Int
        let callSite: CallSite
    }
    private var interests: [Entry] = []
    private(set) var generation = 0
    private var events = 0

    /// The number of events after which the group checks whether the descriptor is still open.
    private static var inspection: Int { 1024 }

    init(_ fd: CInt, _ loop: EventLoop) {
        self.fd = fd
        self.loop = loop
    }

    func requireOwner(_ call: StaticString = #function) { loop?.requireOwner(call) }

    private var all: Interest { interests.reduce(into: []) { $0.formUnion($1.interest) } }

    func add(
        _ interest: Interest, _ handler: @escaping (Interest) -> Void, _ callSite: CallSite
    ) throws(SystemError) {
        guard all.isDisjoint(with: interest) else {
            throw SystemError(.epollControl, EEXIST, detail: "descriptor \(fd) is watched already")
        }
        try loop?.register(all.union(interest), of: fd, handler: self)
        generation += 1
        interests.append(Entry(interest: interest, handler: handler, generation: generation, callSite: callSite))
    }

    func contains(_ generation: Int) -> Bool { interests.contains { $0.generation == generation } }

    /// - Returns: whether there was such a watch.
    func remove(_ interest: Interest, _ generation: Int) -> Bool {
        guard let index = interests.firstIndex(where: { $0.generation == generation }), let loop else { return false }
        // If the descriptor was closed before the watch was cancelled, its number may belong to another handler.
        let isOurs = loop.isHandler(self, of: fd)
        // Released when this function ends, after all state has been updated.
        let removed = interests.remove(at: index)
        if interests.isEmpty {
            if isOurs { loop.forget(fd) }
        } else if isOurs {
            // Narrowing an interest makes no system call, so it cannot fail.
            try? loop.setInterest(all, of: fd, handler: self)
        }
        withExtendedLifetime(removed) {}
        return true
    }

    /// Called when the descriptor was closed before its watches were cancelled: reports that and ends the watches.
    func end(on loop: EventLoop) {
        loop.reportStaleWatch(of: fd, interests.first?.callSite)
        loop.forget(fd)
        releaseHandlers()
    }

    /// As `end`, after the handlers have been called. The number may be registered for another handler by then.
    private func endAfterRefusal(on loop: EventLoop) {
        loop.reportStaleWatch(of: fd, interests.first?.callSite)
        if loop.isHandler(self, of: fd) { loop.forget(fd) }
        releaseHandlers()
    }

    private func releaseHandlers() {
        // Released when this function ends, after all state has been updated.
        let removed = interests
        interests = []
        withExtendedLifetime(removed) {}
    }

    func setReferenced(_ isReferenced: Bool) {
        guard !interests.isEmpty, let loop, loop.isHandler(self, of: fd) else { return }
        loop.setReferenced(isReferenced, of: fd)
    }

    func callSite(of ready: Interest) -> CallSite? {
        interests.first { !$0.interest.isDisjoint(with: ready) }?.callSite
    }

    /// `watch at App/Server.swift:12`
    var label: String { "watch at " + interests.map(\.callSite.description).joined(separator: " and at ") }

    /// Releases the handlers, although a `Watch` may still retain the group.
    func loopWillEnd() { releaseHandlers() }

    func descriptorIsReady(_ ready: Interest) {
        events &+= 1
        if events % Self.inspection == 0, let loop, loop.isStale(fd) { return end(on: loop) }
        // The interest is set again before the handlers are called: a handler may turn the loop and wait for the next
        // event.
        var isRefused = false
        do throws(SystemError) { try loop?.setInterest(all, of: fd, handler: self) } catch { isRefused = true }
        // The descriptor is closed. The handlers may learn that from their own system calls, and open the number again.
        defer { if isRefused, !interests.isEmpty, let loop { endAfterRefusal(on: loop) } }
        // Iterates over a copy, and checks each entry again: a handler may cancel the other watch or its own.
        for entry in interests {
            let mine = ready.intersection(entry.interest)
            guard !mine.isEmpty, contains(entry.generation) else { continue }
            entry.handler(mine)
        }
    }
}
