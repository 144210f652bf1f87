import Glibc
import Promises
import Reactor
import ReactorIO

/// A client and its connection to a backend.
///
/// The client's first bytes are read, at most 64 KiB, and nothing more until a backend has accepted them. Until then
/// the client loses nothing when a backend fails: the next one gets the bytes.
final class Session {
    private let client: Connection
    private let balancer: Balancer
    private let limits: Limits
    private let firstRead: Guarantee<ReadOutcome>
    /// The connection to the backend currently tried.
    private var server: Connection?

    init(_ client: Connection, _ balancer: Balancer, _ limits: Limits) {
        self.client = client
        self.balancer = balancer
        self.limits = limits
        client.idleTimeout = limits.idle
        firstRead = client.read()
    }

    /// Fulfilled when both directions have ended. Otherwise the client is reset, so that it does not mistake a partial
    /// answer for a complete one.
    func serve() -> Promise<Void> {
        attempt(besides: []).tapError(policy: .allErrors) { [client] _ in client.abort() }
    }

    /// Forwards the client to a backend that is not in `tried`, and to the next one if that backend fails unused.
    private func attempt(besides tried: [Backend], _ error: (any Error)? = nil) -> Promise<Void> {
        guard let backend = balancer.next(besides: tried) else { return Promise(error: error ?? BackendLost.ended) }
        backend.connections += 1
        var isUnused = true
        // A reset by the client meanwhile cancels the connect. A client that half-closes may still read.
        return client.cancelWhenPeerGone(ignoringHalfClose: true) { [self] in
            balancer.connect(to: backend, timeout: limits.connect)
        }
        .then { [self] server in
            relay(to: server).tapError(policy: .allErrors) { [self] error in
                isUnused = self.isUnused(server)
                if isUnused && isFault(ofBackend: error) { balancer.noteFailure(of: backend, error) }
                server.abort()
            }
        }
        .ensure { backend.connections -= 1 }
        .recover { [self] error -> Promise<Void> in
            if error is PeerGone || error is ClientLost || !isUnused { throw error }
            return attempt(besides: tried + [backend], error)
        }
    }

    /// `true` if the backend has neither received a byte or the end from the client, nor sent one.
    private func isUnused(_ server: Connection) -> Bool {
        let hasEnded = firstRead.settledValue == .end
        return server.bytesSent == 0 && server.bytesReceived == 0 && !hasEnded
    }

    /// `true` if the failure of a session that has used no backend is the backend's. Failures of the client are not,
    /// nor is an end caused here by the idle time-out or a drain. A backend that the network has lost is found by the
    /// checks.
    private func isFault(ofBackend error: any Error) -> Bool {
        if error is ClientLost { return false }
        guard let error = error as? SystemError else { return true }
        return error.code != ETIMEDOUT && error.code != ECANCELED
    }

    // MARK: Both directions

    /// Fulfilled when both directions have ended, each with the end of its source. Rejected as soon as one fails.
    private func relay(to server: Connection) -> Promise<Void> {
        server.idleTimeout = limits.idle
        self.server = server
        return when(fulfilled: upstream(server), downstream(server)).asVoid().get { server.close() }
    }

    private func upstream(_ server: Connection) -> Promise<Void> {
        firstRead.then { [self] outcome -> Promise<Void> in
            // That backend failed before the client sent anything, and another one has replaced it.
            guard self.server === server else { return .value }
            switch outcome {
            case .bytes(let bytes): return server.write(bytes).then { self.rest(from: self.client, to: server) }
            case .end: return server.shutdownWrite()
            case .failed(let error): throw ClientLost(error: error)
            }
        }
    }

    private func downstream(_ server: Connection) -> Promise<Void> {
        server.read().then { [self] outcome -> Promise<Void> in
            switch outcome {
            case .bytes(let bytes): return client.write(bytes).then { self.rest(from: server, to: self.client) }
            case .end: return isUnused(server) ? Promise(error: BackendLost.ended) : client.shutdownWrite()
            case .failed(let error): throw error
            }
        }
    }

    /// Nothing is read while the sink accepts nothing, so a slow reader slows the writer down; the end of the source
    /// becomes the end of the sink.
    private func rest(from source: Connection, to sink: Connection) -> Promise<Void> {
        pipe(from: source, to: sink, endingSink: true).asVoid()
    }
}

/// The backend ended the connection before anything was exchanged.
enum BackendLost: Error { case ended }

/// The client's first read failed.
struct ClientLost: Error { let error: SystemError }
