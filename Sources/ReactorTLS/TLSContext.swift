#if TLS
import COpenSSL
import ReactorLibc
import Reactor

/// An `SSL_CTX` for all connections of a configuration.
// @unchecked: all fields are constants. Only the initializer changes the `SSL_CTX`. Afterwards OpenSSL counts its
// references atomically, and several threads may make connections from it.
final class TLSContext: @unchecked Sendable {
    enum Role { case client, server }

    let pointer: OpaquePointer
    let configuration: TLSConfiguration
    /// The application protocols in wire format, each after its length. Allocated, because OpenSSL gets pointers into
    /// it.
    let protocols: UnsafeBufferPointer<UInt8>

    init(_ configuration: TLSConfiguration, _ role: Role) throws(TLSError) {
        let protocols = try Self.encode(configuration.applicationProtocols)
        OpenSSLErrors.clear()
        guard let pointer = SSL_CTX_new(role == .client ? TLS_client_method() : TLS_server_method()) else {
            throw OpenSSLErrors.configuration("a context")
        }
        self.pointer = pointer
        self.configuration = configuration
        self.protocols = protocols
        // From here on, a throw runs `deinit`.
        try setParameters()
        if let identity = configuration.identity { try use(identity) }
        switch role {
        case .client: try setUpClient()
        case .server: try setUpServer()
        }
    }

    deinit {
        SSL_CTX_free(pointer)
        protocols.deallocate()
    }

    // MARK: Both sides

    private static func encode(_ protocols: [String]) throws(TLSError) -> UnsafeBufferPointer<UInt8> {
        var bytes: [UInt8] = []
        for name in protocols {
            guard 1...255 ~= name.utf8.count else {
                throw TLSError(.configuration, reason: "the application protocol '\(name)' has not 1 to 255 bytes")
            }
            bytes.append(UInt8(name.utf8.count))
            bytes += name.utf8
        }
        let buffer = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: bytes.count)
        _ = buffer.initialize(from: bytes)
        return UnsafeBufferPointer(buffer)
    }

    private func setParameters() throws(TLSError) {
        copenssl_configure(pointer)
        SSL_CTX_set_info_callback(pointer) { ssl, event, _ in
            guard let ssl, event & SSL_CB_LOOP != 0 || event == copenssl_alert_is_sent else { return }
            TLSFilter.with(ssl) { $0.noteStep() }
        }
        guard configuration.minimumVersion <= configuration.maximumVersion,
            copenssl_set_versions(
                pointer, configuration.minimumVersion.rawValue, configuration.maximumVersion.rawValue) == 1
        else { throw TLSError(.configuration, reason: "no version from the minimum to the maximum") }
        if SSL_CTX_set_cipher_list(pointer, configuration.ciphers) != 1 {
            throw OpenSSLErrors.configuration("ciphers '\(configuration.ciphers)'")
        }
        if let suites = configuration.cipherSuites, SSL_CTX_set_ciphersuites(pointer, suites) != 1 {
            throw OpenSSLErrors.configuration("cipherSuites '\(suites)'")
        }
    }

    private func use(_ identity: TLSIdentity) throws(TLSError) {
        let result = identity.withChain {
            SSL_CTX_use_cert_and_key(pointer, identity.certificate, identity.key, $0, 1)
        }
        if result != 1 { throw OpenSSLErrors.configuration("the identity") }
    }

    /// - Returns: bytes that are equal for equal authorities.
    @discardableResult
    private func addTrustRoots() throws(TLSError) -> [UInt8] {
        let roots: [OpaquePointer]
        switch configuration.trustRoots {
        case .system:
            if SSL_CTX_set_default_verify_paths(pointer) != 1 {
                throw OpenSSLErrors.configuration("the authorities of the system")
            }
            return Array("system".utf8)
        case .file(let path): roots = try PEM.certificates(in: try PEM.read(file: path), path)
        case .pem(let bytes): roots = try PEM.certificates(in: Secret(bytes), "the trust roots")
        }
        defer { for root in roots { X509_free(root) } }
        var digests: [UInt8] = []
        for root in roots {
            var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
            var count: CUnsignedInt = 0
            // Servers name these authorities when they ask for a client's certificate.
            guard X509_STORE_add_cert(SSL_CTX_get_cert_store(pointer), root) == 1,
                SSL_CTX_add_client_CA(pointer, root) == 1, X509_digest(root, EVP_sha256(), &digest, &count) == 1
            else { throw OpenSSLErrors.configuration("the trust roots") }
            digests += digest.prefix(Int(count))
        }
        return digests
    }

    // MARK: Client

    private func setUpClient() throws(TLSError) {
        if configuration.serverVerification != .none {
            try addTrustRoots()
            SSL_CTX_set_verify(pointer, SSL_VERIFY_PEER, nil)
        }
        if !protocols.isEmpty {
            // This function alone returns 0 on success.
            guard SSL_CTX_set_alpn_protos(pointer, protocols.baseAddress, CUnsignedInt(protocols.count)) == 0 else {
                throw OpenSSLErrors.configuration("the application protocols")
            }
        }
        guard configuration.resumesSessions else { return }
        copenssl_report_sessions(pointer)
        SSL_CTX_sess_set_new_cb(pointer) { ssl, session in
            guard let ssl, let session else { return 0 }
            return TLSFilter.with(ssl) { $0.takeSession(session) } ? 1 : 0
        }
    }

    // MARK: Server

    private func setUpServer() throws(TLSError) {
        guard configuration.identity != nil || configuration.identityForName != nil else {
            throw TLSError(.configuration, reason: "a server needs an identity")
        }
        copenssl_prefer_own_ciphers(pointer)
        copenssl_cache_no_sessions(pointer)
        if !configuration.resumesSessions {
            copenssl_disable_tickets(pointer)
            SSL_CTX_set_num_tickets(pointer, 0)
        } else if !configuration.ticketKeys.isEmpty {
            SSL_CTX_set_tlsext_ticket_key_evp_cb(pointer) { ssl, name, vector, cipher, mac, isNew in
                guard let ssl, let name, let vector, let cipher, let mac else { return -1 }
                let keys = TLSFilter.with(ssl) { $0.context.configuration.ticketKeys }
                return isNew == 1
                    ? TLSTicketKey.seal(with: keys, name, vector, cipher, mac)
                    : TLSTicketKey.open(
                        with: keys, name, vector, cipher, mac, mayKeep: SSL_version(ssl) < TLS1_3_VERSION)
            }
        }
        // A resumed client is not verified again, so its session is valid only under the rules that verified it.
        var rules: [UInt8] = Array("swift-reactor".utf8)
        if configuration.clientCertificates != .notRequested {
            let isRequired = configuration.clientCertificates == .required
            rules.append(isRequired ? 1 : 0)
            rules += try addTrustRoots()
            SSL_CTX_set_verify(
                pointer, SSL_VERIFY_PEER | (isRequired ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0), nil)
        }
        var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: CUnsignedInt = 0
        guard EVP_Digest(rules, rules.count, &digest, &count, EVP_sha256(), nil) == 1,
            SSL_CTX_set_session_id_context(pointer, digest, count) == 1
        else { throw OpenSSLErrors.configuration("a context") }
        if !protocols.isEmpty {
            SSL_CTX_set_alpn_select_cb(
                pointer,
                { ssl, name, count, offered, offeredCount, _ in
                    guard let ssl, let name, let count else { return SSL_TLSEXT_ERR_ALERT_FATAL }
                    let own = TLSFilter.with(ssl) { $0.context.protocols }
                    // The function takes mutable names, but does not change them.
                    return name.withMemoryRebound(to: UnsafeMutablePointer<UInt8>?.self, capacity: 1) { name in
                        let result = SSL_select_next_proto(
                            name, count, own.baseAddress, CUnsignedInt(own.count), offered, offeredCount)
                        return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL
                    }
                }, nil)
        }
        if configuration.identityForName != nil {
            SSL_CTX_set_cert_cb(
                pointer,
                { ssl, _ in
                    guard let ssl else { return 0 }
                    return TLSFilter.with(ssl) { $0.chooseIdentity() } ? 1 : 0
                }, nil)
        }
    }
}
#endif
