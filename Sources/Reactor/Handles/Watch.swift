extension EventLoop {
    /// A handle to a hook, or to a watch on a descriptor or signal; see `LoopHandle`.
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

        /// Ends the watch and releases its handler. Pending events are not delivered. When a signal's last watch ends,
        /// the process's previous action is restored, and receives any signal that has already arrived; see `onSignal`.
        /// - Returns: true if the watch was active.
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

        /// True until the watch is cancelled or its descriptor is found closed.
        public var isActive: Bool {
            requireOwner()
            return switch target {
            case .descriptor(let group, let generation): group.contains(generation)
            case .signal(let loop, let id): loop.signals.contains(id)
            case .hook(let loop, let id): loop.hooks.contains(id)
            }
        }

        /// Lets the loop end while this watch is active. Both watches of a descriptor are unreferenced together. A hook
        /// never keeps the loop alive.
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
