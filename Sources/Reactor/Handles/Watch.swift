extension EventLoop {
    /// A handle to the watch of a descriptor or of a signal, or to a hook; see `LoopHandle`.
    public struct Watch: LoopHandle {
        enum Target {
            case descriptor(WatchGroup, generation: Int)
            case signal(EventLoop, id: Int)
            case hook(EventLoop, id: Int)
        }

        private let target: Target

        init(_ target: Target) { self.target = target }

        private func requireOwner(_ call: StaticString = #function) {
            switch target {
            case .descriptor(let group, _): group.requireOwner(call)
            case .signal(let loop, _), .hook(let loop, _): loop.requireOwner(call)
            }
        }

        /// Ends the watch and releases its handler. Pending events are no longer delivered. The end of a signal's last
        /// watch restores the previous action of the process, which then gets a signal that has arrived already; see
        /// `onSignal`.
        /// - Returns: whether the watch was active.
        @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
        @discardableResult
        public func cancel() -> Bool {
            requireOwner()
            switch target {
            case .descriptor(let group, let generation): return group.remove(generation)
            case .hook(let loop, let id): return loop.hooks.remove(id)
            case .signal(let loop, let id):
                guard let removed = loop.signals.remove(id) else { return false }
                removed.end()
                return true
            }
        }

        /// `true` until the watch ends, by `cancel()` or because its descriptor was found to be closed.
        public var isActive: Bool {
            requireOwner()
            return switch target {
            case .descriptor(let group, let generation): group.contains(generation)
            case .signal(let loop, let id): loop.signals.contains(id)
            case .hook(let loop, let id): loop.hooks.contains(id)
            }
        }

        /// Lets the loop end even though this watch is active. Both watches of one descriptor are unreferenced
        /// together. A hook never keeps the loop alive.
        @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
        public func unref() { setReferenced(false) }

        /// Makes the watch keep the loop alive again.
        @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
        public func ref() { setReferenced(true) }

        private func setReferenced(_ isReferenced: Bool, _ call: StaticString = #function) {
            requireOwner(call)
            switch target {
            case .descriptor(let group, _): group.setReferenced(isReferenced)
            case .signal(let loop, let id): loop.signals.setReferenced(id, isReferenced)
            case .hook: break
            }
        }
    }
}
