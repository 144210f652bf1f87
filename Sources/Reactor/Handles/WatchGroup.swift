import ReactorLibc

final class WatchGroup: ReadinessHandler {
    private let fd: CInt
    // While the group watches, the loop's poller retains it. `Watch` values retain the group but do not keep the loop
    // alive.
    private weak var loop: EventLoop?
    private struct WatchedInterest {
        let interest: Interest
        let handler: (Interest) -> Void
        let generation: Int
        let callSite: CallSite
    }
    private var interests: [WatchedInterest] = []
    private(set) var generation = 0
    private var events = 0

    /// Events between two checks that the descriptor is still open.
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
        guard all.isDisjoint(with: interest) else { throw .isWatchedAlready(fd) }
        try loop?.register(all.union(interest), of: fd, handler: self)
        generation += 1
        let watch = WatchedInterest(interest: interest, handler: handler, generation: generation, callSite: callSite)
        interests.append(watch)
    }

    func contains(_ generation: Int) -> Bool { interests.contains { $0.generation == generation } }

    func remove(_ generation: Int) -> Bool {
        guard let index = interests.firstIndex(where: { $0.generation == generation }), let loop else { return false }
        // If the descriptor was closed first, its number may belong to another handler.
        let isOurs = loop.handler(of: fd) === self
        // Released at return, when all state is updated.
        let removed = interests.remove(at: index)
        if interests.isEmpty {
            if isOurs { loop.forget(fd) }
        } else if isOurs {
            // Narrowing makes no system call, so it cannot fail.
            try? loop.setInterest(all, of: fd, handler: self)
        }
        withExtendedLifetime(removed) {}
        return true
    }

    /// Reports that the descriptor was closed before its watches were cancelled, and ends them.
    func end(on loop: EventLoop) {
        loop.reportStaleWatch(of: fd, interests.first?.callSite)
        loop.forget(fd)
        releaseHandlers()
    }

    /// Like `end`, after the handlers' calls, when another handler may have the number.
    private func endAfterRefusal(on loop: EventLoop) {
        loop.reportStaleWatch(of: fd, interests.first?.callSite)
        if loop.handler(of: fd) === self { loop.forget(fd) }
        releaseHandlers()
    }

    private func releaseHandlers() {
        // Released at return, when all state is updated.
        let removed = interests
        interests = []
        withExtendedLifetime(removed) {}
    }

    func setReferenced(_ isReferenced: Bool) {
        guard !interests.isEmpty, let loop, loop.handler(of: fd) === self else { return }
        loop.setReferenced(isReferenced, of: fd)
    }

    func callSite(of ready: Interest) -> CallSite? {
        interests.first { !$0.interest.isDisjoint(with: ready) }?.callSite
    }

    /// `watch at App/Server.swift:12`
    var label: String { "watch at " + interests.map(\.callSite.description).joined(separator: " and at ") }

    /// Releases the handlers, since a `Watch` may still retain this group.
    func loopWillEnd() { releaseHandlers() }

    func descriptorIsReady(_ ready: Interest) -> Interest {
        events &+= 1
        if events % Self.inspection == 0, let loop, loop.isStale(fd) { end(on: loop) } else { callHandlers(ready) }
        return []
    }

    private func callHandlers(_ ready: Interest) {
        // The interest is set first, because a handler may turn the loop and wait for the next event.
        var isRefused = false
        do throws(SystemError) { try loop?.setInterest(all, of: fd, handler: self) } catch { isRefused = true }
        // The descriptor is closed. The handlers may have noticed by their own system calls, and opened the number
        // again.
        defer { if isRefused, !interests.isEmpty, let loop { endAfterRefusal(on: loop) } }
        // Iterates over a copy and checks each entry, because a handler may cancel either watch.
        for entry in interests {
            let mine = ready.intersection(entry.interest)
            guard !mine.isEmpty, contains(entry.generation) else { continue }
            entry.handler(mine)
        }
    }
}
