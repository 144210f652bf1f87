#if TLS
import COpenSSL
import Reactor

// @unchecked: the initializer sets the pointers, and `deinit` releases them. In between they are only read; OpenSSL
// counts references atomically and locks what it computes when a certificate or key is first used.
/// A certificate, the intermediate certificates that lead to its authority, and its private key: presented by a server,
/// or by a client when asked for a certificate.
///
/// It is immutable, and may be used by several configurations and on any thread.
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

    /// From PEM texts.
    /// - Parameters:
    ///   - certificateChain: the certificate, followed by the intermediate certificates.
    ///   - privateKey: the key of the certificate: RSA, ECDSA, Ed25519 or another that OpenSSL reads.
    ///   - password: the password of an encrypted key. Without it, an encrypted key is refused.
    /// - Throws: a `TLSError` with the cause `configuration`, also if the key does not match the certificate.
    public convenience init(
        certificateChain: some Sequence<UInt8>, privateKey: some Sequence<UInt8>, password: String? = nil
    ) throws(TLSError) {
        try self.init(
            Secret(certificateChain), Secret(privateKey), password, "certificate chain", "private key", nil)
    }

    /// From PEM files, which are read now, on this thread, and by `reloaded()`.
    /// - Parameters:
    ///   - certificateChainFile: a file with the certificate, followed by the intermediate certificates.
    ///   - privateKeyFile: a file with the key; may be the same file.
    ///   - password: the password of an encrypted key.
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

    /// An identity from the current content of the files; itself, if it was made from texts.
    /// - Throws: as the initializer.
    public func reloaded() throws(TLSError) -> TLSIdentity {
        guard let files else { return self }
        return try TLSIdentity(
            certificateChainFile: files.chain, privateKeyFile: files.key, password: files.password)
    }

    /// The certificate, without its chain and its key.
    public var certificateInfo: TLSCertificate { TLSCertificate(certificate) }

    /// Calls `body` with the chain in OpenSSL's form, which is released afterwards.
    func withChain<Result>(_ body: (OpaquePointer?) -> Result) -> Result {
        let stack = copenssl_new_chain()
        defer { copenssl_free_chain(stack) }
        for certificate in chain { copenssl_push(stack, certificate) }
        return body(stack)
    }
}
#endif
