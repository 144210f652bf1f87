import Glibc
import Logging
import Promises
import Reactor
import ReactorIO
import Synchronization

extension Logger {
    /// This logger with `connection.peer` and `connection.local` in its metadata.
    ///
    /// ```swift
    /// listener.serve { connection in
    ///     let logger = logger.with(connection)
    ///     …
    /// }
    /// ```
    ///
    /// Costs a system call, for the local address.
    public func with(_ connection: Connection) -> Logger {
        var logger = self
        if let peer = connection.peerAddress { logger[metadataKey: "connection.peer"] = "\(peer)" }
        if let local = connection.localAddress { logger[metadataKey: "connection.local"] = "\(local)" }
        return logger
    }

    /// An error handler for the `onError:` of `serve` that logs each error with the connection's peer. A peer can cause
    /// any number of errors, so at most `limit` are logged; the next logged error has the number of those omitted
    /// before it, as `suppressed`.
    ///
    /// ```swift
    /// listener.serve(onError: logger.connectionErrors()) { connection in … }
    /// ```
    public func connectionErrors(
        level: Level = .info, limit: (burst: Int, period: Duration) = (burst: 10, period: .seconds(1))
    ) -> @Sendable (any Error, Connection) -> Void {
        let gate = Gate(limit)
        return { error, connection in
            guard let suppressed = gate.pass() else { return }
            var metadata: Metadata = ["error": "\(error)", "error.type": "\(type(of: error))"]
            if let peer = connection.peerAddress { metadata["connection.peer"] = "\(peer)" }
            if suppressed > 0 { metadata["suppressed"] = "\(suppressed)" }
            log(level: level, "a connection has failed", metadata: metadata, source: "swift-reactor")
        }
    }

    /// Lets a limited number of events of each period pass. Thread-safe.
    private final class Gate: Sendable {
        private let limit: (burst: Int, period: Duration)
        private let state: Mutex<(end: LoopInstant, passed: Int, suppressed: Int)>

        init(_ limit: (burst: Int, period: Duration)) {
            self.limit = (max(limit.burst, 1), limit.period)
            state = Mutex((end: LoopInstant(nanoseconds: .min), passed: 0, suppressed: 0))
        }

        /// - Returns: the number of events held back since the last one that passed; `nil` if this one is held back.
        func pass() -> Int? {
            // Errors are handled on the thread of a loop, so the loop's clock applies.
            let now = EventLoop.current.now
            return state.withLock { state in
                if now >= state.end {
                    state.end = now.advanced(by: limit.period)
                    state.passed = 0
                }
                if state.passed == limit.burst {
                    state.suppressed += 1
                    return nil
                }
                state.passed += 1
                defer { state.suppressed = 0 }
                return state.suppressed
            }
        }
    }
}

extension Logger.MetadataProvider {
    /// Adds `thread`, the name of the thread that logs: for a thread of `EventLoop.spawn` or a `LoopGroup` the first 15
    /// bytes of its name, which is what Linux keeps.
    ///
    /// ```swift
    /// LoggingSystem.bootstrap(StreamLogHandler.standardError, metadataProvider: .threadName)
    /// ```
    public static let threadName = Logger.MetadataProvider {
        var name = [CChar](repeating: 0, count: 16)
        guard let nameOfThread, nameOfThread(pthread_self(), &name, name.count) == 0 else { return [:] }
        return ["thread": "\(String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self))"]
    }
}

/// pthread_getname_np(3), which Swift's Glibc module omits; `nil` if the C library has none.
// Sound because glibc and musl both declare the function with these types.
private let nameOfThread = dlsym(nil, "pthread_getname_np").map {
    unsafeBitCast($0, to: (@convention(c) @Sendable (pthread_t, UnsafeMutablePointer<CChar>, Int) -> CInt).self)
}
