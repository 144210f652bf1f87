#if TLS
import COpenSSL
import Synchronization

/// A session that a client may resume.
// @unchecked: the `SSL_SESSION` is not changed; OpenSSL counts its references atomically.
final class ResumableSession: @unchecked Sendable {
    let pointer: OpaquePointer

    /// - Parameter pointer: a session with a reference that this object takes over.
    init(_ pointer: OpaquePointer) { self.pointer = pointer }

    deinit { SSL_SESSION_free(pointer) }

    /// Whether it may be resumed once only: in TLS 1.3, where an observer could otherwise tell that two connections belong
    /// together.
    var isForOneUse: Bool { SSL_SESSION_get_protocol_version(pointer) >= TLSVersion.tls13.rawValue }
}

/// The sessions of a client, by the names of its servers. For all threads.
final class SessionStore: Sendable {
    private static let sessionsPerName = 2
    private static let names = 256

    private struct State {
        var sessions: [String: [ResumableSession]] = [:]
        /// The names, in the order in which they were first kept.
        var order: [String] = []
    }

    private let state = Mutex(State())

    /// Keeps a session, as the next one of the name.
    func keep(_ session: ResumableSession, for name: String) {
        // Released behind the lock.
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

    /// The newest session of the name.
    func take(for name: String) -> ResumableSession? {
        state.withLock { state in
            guard let session = state.sessions[name]?.last else { return nil }
            if session.isForOneUse { state.sessions[name]?.removeLast() }
            return session
        }
    }
}
#endif
