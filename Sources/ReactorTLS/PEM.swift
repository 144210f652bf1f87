#if TLS
import COpenSSL
import ReactorLibc
import Reactor

enum PEM {
    /// Reads a file. Certificates and keys are small, so it refuses more than 16 MiB.
    static func read(file path: String) throws(TLSError) -> Secret {
        let calls = FileSyscalls.real
        var fd: Int
        repeat { fd = calls.open(path, O_RDONLY | O_NOCTTY, 0) } while fd == -Int(EINTR)
        if fd < 0 { throw unreadable(path, -fd) }
        defer { _ = calls.close(CInt(fd)) }
        var status = stat()
        _ = calls.status(CInt(fd), &status)
        // One byte more than the file's size, so that the next read returns 0.
        let content = Secret(capacity: min(max(status.st_size, 4096), 16 << 20) + 1)
        while true {
            let count = content.append { calls.read(CInt(fd), $0.baseAddress!, $0.count) }
            if count == 0 { return content }
            if count < 0 && count != -Int(EINTR) { throw unreadable(path, -count) }
            if content.count > 16 << 20 {
                throw TLSError(.configuration, reason: "\(path): the file is larger than 16 MiB")
            }
        }
    }

    private static func unreadable(_ path: String, _ code: Int) -> TLSError {
        TLSError(.configuration, reason: "\(path): \(String(cString: strerror(CInt(code))))")
    }

    /// Reads all certificates from PEM text, in order. The caller must release them.
    static func certificates(in text: Secret, _ subject: String) throws(TLSError) -> [OpaquePointer] {
        let found: Result<[OpaquePointer], TLSError> = withBIO(text) { bio in
            var found: [OpaquePointer] = []
            while let certificate = PEM_read_bio_X509(bio, nil, noPassword, nil) { found.append(certificate) }
            // OpenSSL reports the text's end as an error too: no start line.
            let error = ERR_peek_last_error()
            let isAtEnd = copenssl_library(error) == ERR_LIB_PEM && copenssl_reason(error) == PEM_R_NO_START_LINE
            OpenSSLErrors.clear()
            if isAtEnd && !found.isEmpty { return .success(found) }
            for certificate in found { X509_free(certificate) }
            let reason = isAtEnd ? "there is no certificate" : OpenSSLErrors.text(error)
            return .failure(TLSError(.configuration, reason: "\(subject): \(reason)"))
        }
        return try found.get()
    }

    /// Reads the private key from PEM text. The caller must release it.
    static func privateKey(
        in text: Secret, password: String?, _ subject: String
    ) throws(TLSError) -> OpaquePointer {
        let key: OpaquePointer? = withBIO(text) { bio in
            guard let password else { return PEM_read_bio_PrivateKey(bio, nil, noPassword, nil) }
            // Without a callback the last argument is the zero-terminated password.
            let secret = Secret(password.utf8)
            secret.append {
                $0[0] = 0
                return 1
            }
            return withExtendedLifetime(secret) { PEM_read_bio_PrivateKey(bio, nil, nil, secret.memory.baseAddress) }
        }
        guard let key else { throw OpenSSLErrors.configuration(subject) }
        return key
    }

    /// Calls `body` with a BIO that lends the text, and an empty error queue.
    private static func withBIO<Result>(_ text: Secret, _ body: (OpaquePointer?) -> Result) -> Result {
        OpenSSLErrors.clear()
        return withExtendedLifetime(text) {
            let bio = BIO_new_mem_buf(text.bytes.baseAddress, CInt(text.count))
            defer { BIO_free(bio) }
            return body(bio)
        }
    }
}

/// OpenSSL's own callback would ask on the terminal.
private func noPassword(
    _ buffer: UnsafeMutablePointer<CChar>?, _ size: CInt, _ isForWriting: CInt, _ context: UnsafeMutableRawPointer?
) -> CInt {
    -1
}
#endif
