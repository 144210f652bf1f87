#if TLS
import COpenSSL
import Promises
import Reactor
import ReactorIO

/// TLS as a connection's filter: an `SSL` that reads and writes memory.
///
/// Used on its connection's thread.
final class TLSFilter: ConnectionFilter {
    let context: TLSContext
    let peer: SocketAddress?
    private let channel = ByteChannel()
    /// `nil` on a server until its client's hello is complete.
    private(set) var ssl: OpaquePointer?
    /// The received part of the hello, on a server.
    private var hello = ClientHello()
    /// A client's session store, and the name to look up.
    private let sessions: (store: SessionStore, name: String)?
    /// The session to resume, until the end of the handshake.
    private var offeredSession: ResumableSession?
    private var isReady = false
    /// True when handshake bytes after the client's hello have arrived.
    private var isInFlight = false
    /// The number of OpenSSL's steps for TLS's own messages, such as key updates, since the last data.
    private var stepsWithoutData = 0
    /// OpenSSL takes up to eight counted steps per message.
    private static let mostStepsWithoutData = 256

    convenience init(server context: TLSContext, peer: SocketAddress?) { self.init(context, peer, nil) }

    /// - Parameter name: the name for the server's certificate to match, sent as SNI unless it is an address.
    convenience init(
        client context: TLSContext, name: ServerName?, sessions: SessionStore?, peer: SocketAddress?
    ) throws(TLSError) {
        self.init(context, peer, sessions.flatMap { store in name.map { (store, $0.text) } })
        let ssl = try makeSSL()
        SSL_set_connect_state(ssl)
        if let name { try setServerName(name, ssl) }
        if let name, let session = sessions?.take(for: name.text) {
            // OpenSSL does not resume an unsuitable session, which is no error.
            SSL_set_session(ssl, session.pointer)
            OpenSSLErrors.clear()
            offeredSession = session
        }
    }

    private init(_ context: TLSContext, _ peer: SocketAddress?, _ sessions: (SessionStore, String)?) {
        self.context = context
        self.peer = peer
        self.sessions = sessions
    }

    private func makeSSL() throws(TLSError) -> OpaquePointer {
        OpenSSLErrors.clear()
        guard let ssl = SSL_new(context.pointer) else { throw OpenSSLErrors.configuration("a connection") }
        self.ssl = ssl
        guard let bio = channel.makeBIO() else { throw OpenSSLErrors.configuration("a connection") }
        // The `SSL` owns the BIO for both directions.
        SSL_set_bio(ssl, bio, bio)
        // Unretained: used only in callbacks during this filter's calls.
        SSL_set_ex_data(ssl, 0, Unmanaged.passUnretained(self).toOpaque())
        return ssl
    }

    deinit { if let ssl { SSL_free(ssl) } }

    /// Calls `body` with the filter that called OpenSSL, for callbacks. Does not retain the filter, since its caller
    /// does.
    static func with<Result>(_ ssl: OpaquePointer, _ body: (TLSFilter) -> Result) -> Result {
        Unmanaged<TLSFilter>.fromOpaque(SSL_get_ex_data(ssl, 0))._withUnsafeGuaranteedRef(body)
    }

    private func setServerName(_ name: ServerName, _ ssl: OpaquePointer) throws(TLSError) {
        var isSet = name.isAddress || copenssl_set_server_name(ssl, name.text) == 1
        if isSet && context.configuration.serverVerification == .full {
            let parameters = SSL_get0_param(ssl)
            // The subject's common name does not count, as in browsers and Go.
            X509_VERIFY_PARAM_set_hostflags(
                parameters,
                CUnsignedInt(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT))
            isSet =
                name.isAddress
                ? X509_VERIFY_PARAM_set1_ip_asc(parameters, name.text) == 1
                : X509_VERIFY_PARAM_set1_host(parameters, name.text, 0) == 1
        }
        if !isSet { throw OpenSSLErrors.configuration("the server name '\(name.text)'") }
    }

    // MARK: Calls of the connection

    func begin(_ output: inout FilterOutput) throws {
        // A server waits for its client's hello.
        if let ssl { try advanceHandshake(ssl, &output) }
    }

    func receive(_ bytes: RawSpan, _ output: inout FilterOutput) throws {
        try bytes.withUnsafeBytes { bytes in
            if let ssl {
                if !isReady { isInFlight = true }
                return try receive(bytes, ssl, &output)
            }
            guard hello.append(bytes) else { return }
            let ssl = try makeSSL()
            SSL_set_accept_state(ssl)
            let received = hello.bytes
            hello = ClientHello()
            try received.withUnsafeBytes { try receive($0, ssl, &output) }
        }
    }

    private func receive(_ bytes: UnsafeRawBufferPointer, _ ssl: OpaquePointer, _ output: inout FilterOutput) throws {
        channel.input = bytes
        // Empty already unless the stream has ended or failed, because OpenSSL keeps an incomplete record.
        defer { channel.input = UnsafeRawBufferPointer(start: nil, count: 0) }
        if !isReady { try advanceHandshake(ssl, &output) }
        if isReady { try readRecords(ssl, &output) }
    }

    func write(_ bytes: RawSpan, _ output: inout FilterOutput) throws {
        try bytes.withUnsafeBytes { bytes in
            guard !bytes.isEmpty, let ssl else { return }
            // A record of 16 KiB grows by 22 bytes in TLS 1.3, and by up to 85 in TLS 1.2.
            channel.output.reserveCapacity(bytes.count + bytes.count / 128 + 128)
            OpenSSLErrors.clear()
            var count = 0
            let result = SSL_write_ex(ssl, bytes.baseAddress, bytes.count, &count)
            send(&output)
            if result == 1 { return }
            if SSL_get_error(ssl, result) == SSL_ERROR_WANT_READ { return output.waitForInput() }
            throw takeError()
        }
    }

    func end(_ output: inout FilterOutput) {
        guard let ssl else { return }
        OpenSSLErrors.clear()
        SSL_shutdown(ssl)
        OpenSSLErrors.clear()
        send(&output)
    }

    var isInsideRecord: Bool { ssl.map { SSL_has_pending($0) == 1 } ?? !hello.bytes.isEmpty }

    /// OpenSSL 3's measured memory, rounded up: per connection, handshake, incomplete record, and certificate chain.
    /// For a chain, OpenSSL allocates the announced size, at most 100 KiB.
    private static let memory = (connection: 5 << 10, handshake: 12 << 10, record: 17 << 10, chain: 100 << 10)

    var heldBytes: Int {
        guard let ssl else { return hello.bytes.capacity }
        var held = Self.memory.connection
        if SSL_has_pending(ssl) == 1 { held += Self.memory.record }
        if isReady { return held }
        held += Self.memory.handshake
        let awaitsChain = SSL_is_server(ssl) == 0 || context.configuration.clientCertificates != .notRequested
        return awaitsChain && isInFlight ? held + Self.memory.chain : held
    }

    // MARK: Calls of OpenSSL

    private func advanceHandshake(_ ssl: OpaquePointer, _ output: inout FilterOutput) throws {
        OpenSSLErrors.clear()
        let result = SSL_do_handshake(ssl)
        // Sends before the throw, since an alert tells the peer the reason.
        send(&output)
        if result == 1 {
            isReady = true
            keepRenewedSession(ssl)
            return output.becomeReady()
        }
        if SSL_get_error(ssl, result) != SSL_ERROR_WANT_READ { throw takeError() }
    }

    private func readRecords(_ ssl: OpaquePointer, _ output: inout FilterOutput) throws {
        // Each successful call leaves the error queue empty.
        OpenSSLErrors.clear()
        var result: CInt = 1
        repeat {
            // Usually enough space, since the plain text is shorter.
            let space = max(channel.input.count, 256)
            let bytes = [UInt8](unsafeUninitializedCapacity: space) { buffer, count in
                // Avoids the last read where possible: an empty read takes as long as a short record.
                repeat {
                    var read = 0
                    result = SSL_read_ex(ssl, buffer.baseAddress! + count, buffer.count - count, &read)
                    count += read
                } while result == 1 && count < buffer.count && hasInput(ssl)
            }
            if !bytes.isEmpty {
                stepsWithoutData = 0
                output.deliver(bytes)
            }
        } while result == 1 && hasInput(ssl)
        // Sends the answer to a key update, or an alert.
        send(&output)
        if result == 1 { return }
        if stepsWithoutData > Self.mostStepsWithoutData {
            let reason = Int(SSL_R_TOO_MANY_KEY_UPDATES)
            throw TLSError(.handshakeOrRecord(reason: reason), reason: "too many messages without data", peer: peer)
        }
        switch SSL_get_error(ssl, result) {
        case SSL_ERROR_WANT_READ: return
        case SSL_ERROR_ZERO_RETURN: output.endInput()
        default: throw takeError()
        }
    }

    private func hasInput(_ ssl: OpaquePointer) -> Bool { !channel.input.isEmpty || SSL_has_pending(ssl) == 1 }

    private func send(_ output: inout FilterOutput) {
        if channel.output.isEmpty { return }
        output.send(channel.output)
        channel.output = []
    }

    // MARK: Callbacks of OpenSSL

    /// - Returns: true if it retains the session, as the callback requires.
    func takeSession(_ session: OpaquePointer) -> Bool {
        guard let sessions else { return false }
        sessions.store.keep(ResumableSession(session), for: sessions.name)
        return true
    }

    /// Keeps a resumed handshake's session if the server replaced its ticket, which OpenSSL does not report in TLS 1.2.
    private func keepRenewedSession(_ ssl: OpaquePointer) {
        guard let offered = offeredSession.take(), !offered.isForOneUse, SSL_session_reused(ssl) == 1,
            SSL_get_session(ssl) != offered.pointer, let session = SSL_get1_session(ssl)
        else { return }
        if !takeSession(session) { SSL_SESSION_free(session) }
    }

    /// Selects the identity for the client's name.
    /// - Returns: true if there is one.
    func chooseIdentity() -> Bool {
        guard let find = context.configuration.identityForName else { return true }
        var identity: TLSIdentity?
        if let name = requestedName {
            do { identity = try find(name) } catch {
                identityError = error
                return false
            }
        }
        guard let identity else { return context.configuration.identity != nil }
        return identity.withChain { SSL_use_cert_and_key(ssl, identity.certificate, identity.key, $0, 1) } == 1
    }

    /// Counts the steps for the peer's messages after the handshake, since a message costs as much as many data
    /// records. Beyond the limit, drops the input, so that OpenSSL returns.
    func noteStep() {
        guard isReady else { return }
        stepsWithoutData += 1
        if stepsWithoutData > Self.mostStepsWithoutData {
            channel.input = UnsafeRawBufferPointer(start: nil, count: 0)
        }
    }

    private var identityError: (any Error)?

    /// The client's DNS name, in lower case. An invalid one counts as none, because a program may look for a file with
    /// that name.
    var requestedName: String? {
        guard let ssl, let text = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name),
            let name = try? ServerName(String(cString: text)), !name.isAddress
        else { return nil }
        return name.text
    }

    // MARK: Errors

    private func takeError() -> any Error {
        guard let error = OpenSSLErrors.takeFirst() else {
            return TLSError(.handshakeOrRecord(reason: 0), reason: "OpenSSL gives no reason", peer: peer)
        }
        if let thrown = identityError { return thrown }
        let reason = Int(copenssl_reason(error))
        guard copenssl_library(error) == ERR_LIB_SSL else {
            return TLSError(.handshakeOrRecord(reason: reason), reason: OpenSSLErrors.text(error), peer: peer)
        }
        let refusal = SSL_get_verify_result(ssl)
        switch reason {
        case Int(SSL_R_CERTIFICATE_VERIFY_FAILED) where refusal != X509_V_OK:
            return TLSError(
                .certificate(CertificateFault(verifyResult: refusal)),
                reason: String(cString: X509_verify_cert_error_string(refusal)), peer: peer)
        case Int(SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE):
            return TLSError(.certificate(.missing), reason: OpenSSLErrors.text(error), peer: peer)
        // Received alerts begin at 1000.
        case 1000...1255:
            return TLSError(.alert(UInt8(reason - 1000)), reason: OpenSSLErrors.text(error), peer: peer)
        default:
            return TLSError(.handshakeOrRecord(reason: reason), reason: OpenSSLErrors.text(error), peer: peer)
        }
    }
}
#endif
