#if TLS
import COpenSSL
import Reactor

// @unchecked: the initializer sets the pointers, `deinit` releases them, and nothing changes them in between. OpenSSL
// counts references atomically, and locks the results that it computes on a certificate's or key's first use.
/// A certificate, the intermediate certificates up to its authority, and its private key. A server presents it; so does
/// a client that is asked for a certificate.
///
/// Immutable; several configurations and any thread may use it.
public final class TLSIdentity: @unchecked Sendable {
    let certificate: OpaquePointer
    let chain: [OpaquePointer]
    let key: OpaquePointer
    private let files: Files?

    private struct Files {
        let chain: String
        let key: String
        let password: String?
    }

    /// Reads PEM texts.
    /// - Parameters:
    ///   - certificateChain: the certificate, then the intermediate certificates.
    ///   - privateKey: the certificate's key: RSA, ECDSA, Ed25519 or another that OpenSSL reads.
    ///   - password: an encrypted key's password. An encrypted key without a password is refused.
    /// - Throws: a `TLSError` with the cause `configuration`, also if the key does not match the certificate.
    public convenience init(
        certificateChain: some Sequence<UInt8>, privateKey: some Sequence<UInt8>, password: String? = nil
    ) throws(TLSError) {
        try self.init(
            Secret(certificateChain), Secret(privateKey), password, "certificate chain", "private key", nil)
    }

    /// Reads PEM files now, on this thread; `reloaded()` reads them again.
    /// - Parameters:
    ///   - certificateChainFile: a file with the certificate, then the intermediate certificates.
    ///   - privateKeyFile: a file with the key, possibly the same.
    ///   - password: an encrypted key's password.
    /// - Throws: a `TLSError` with the cause `configuration`, which names the file.
    public convenience init(
        certificateChainFile: String, privateKeyFile: String, password: String? = nil
    ) throws(TLSError) {
        try self.init(
            try PEM.read(file: certificateChainFile), try PEM.read(file: privateKeyFile), password,
            certificateChainFile, privateKeyFile,
            Files(chain: certificateChainFile, key: privateKeyFile, password: password))
    }

    private init(
        _ chain: Secret, _ privateKey: Secret, _ password: String?, _ chainName: String, _ keyName: String,
        _ files: Files?
    ) throws(TLSError) {
        let certificates = try PEM.certificates(in: chain, chainName)
        do throws(TLSError) {
            key = try PEM.privateKey(in: privateKey, password: password, keyName)
        } catch {
            for certificate in certificates { X509_free(certificate) }
            throw error
        }
        certificate = certificates[0]
        self.chain = Array(certificates.dropFirst())
        self.files = files
        if X509_check_private_key(certificate, key) != 1 {
            throw OpenSSLErrors.configuration("\(keyName), with the certificate of \(chainName)")
        }
    }

    deinit {
        X509_free(certificate)
        for certificate in chain { X509_free(certificate) }
        EVP_PKEY_free(key)
    }

    /// Reads the files again. Returns itself if made from texts.
    /// - Throws: the same errors as the initializer.
    public func reloaded() throws(TLSError) -> TLSIdentity {
        guard let files else { return self }
        return try TLSIdentity(
            certificateChainFile: files.chain, privateKeyFile: files.key, password: files.password)
    }

    /// The certificate, without chain and key.
    public var certificateInfo: TLSCertificate { TLSCertificate(certificate) }

    /// Calls `body` with the chain in OpenSSL's form, then releases it.
    func withChain<Result>(_ body: (OpaquePointer?) -> Result) -> Result {
        let stack = copenssl_new_chain()
        defer { copenssl_free_chain(stack) }
        for certificate in chain { copenssl_push(stack, certificate) }
        return body(stack)
    }
}
#endif
