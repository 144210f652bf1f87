#if TLS
import COpenSSL
import Synchronization

// @unchecked: the `SSL_SESSION` does not change; OpenSSL counts its references atomically.
final class ResumableSession: @unchecked Sendable {
    let pointer: OpaquePointer

    /// - Parameter pointer: a session; this object takes over one reference.
    init(_ pointer: OpaquePointer) { self.pointer = pointer }

    deinit { SSL_SESSION_free(pointer) }

    /// True in TLS 1.3, where a second use would let an observer link two connections.
    var isForOneUse: Bool { SSL_SESSION_get_protocol_version(pointer) >= TLSVersion.tls13.rawValue }
}

/// A client's sessions by server name. Any thread may use it.
final class SessionStore: Sendable {
    private static let sessionsPerName = 2
    private static let names = 256

    private struct State {
        var sessions: [String: [ResumableSession]] = [:]
        /// The names, in the order of their first sessions.
        var order: [String] = []
    }

    private let state = Mutex(State())

    func keep(_ session: ResumableSession, for name: String) {
        // Dropped sessions are released outside the lock.
        var dropped: [ResumableSession] = []
        state.withLock { state in
            if state.sessions[name] == nil {
                if state.order.count == Self.names {
                    dropped += state.sessions.removeValue(forKey: state.order.removeFirst()) ?? []
                }
                state.order.append(name)
            }
            state.sessions[name, default: []].append(session)
            if state.sessions[name]!.count > Self.sessionsPerName {
                dropped.append(state.sessions[name]!.removeFirst())
            }
        }
        withExtendedLifetime(dropped) {}
    }

    func take(for name: String) -> ResumableSession? {
        state.withLock { state in
            guard let session = state.sessions[name]?.last else { return nil }
            if session.isForOneUse { state.sessions[name]?.removeLast() }
            return session
        }
    }
}
#endif
