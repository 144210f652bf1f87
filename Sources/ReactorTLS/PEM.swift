#if TLS
import COpenSSL
import Glibc
import Reactor

/// Reads files and what PEM has in them.
enum PEM {
    /// The content of a file. Certificates and keys are small: more than 16 MiB is refused.
    static func read(file path: String) throws(TLSError) -> [UInt8] {
        guard let file = fopen(path, "re") else { throw unreadable(path) }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = fread(&buffer, 1, buffer.count, file)
            bytes += buffer[..<count]
            if bytes.count > 16 << 20 {
                throw TLSError(.configuration, reason: "\(path): the file is larger than 16 MiB")
            }
            if count < buffer.count { break }
        }
        if ferror(file) != 0 { throw unreadable(path) }
        return bytes
    }

    private static func unreadable(_ path: String) -> TLSError {
        TLSError(.configuration, reason: "\(path): \(String(cString: strerror(errno)))")
    }

    /// All certificates of a text, in their order. The caller releases them.
    static func certificates(in bytes: [UInt8], _ subject: String) throws(TLSError) -> [OpaquePointer] {
        let found: Result<[OpaquePointer], TLSError> = withBIO(bytes) { bio in
            var found: [OpaquePointer] = []
            while let certificate = PEM_read_bio_X509(bio, nil, noPassword, nil) { found.append(certificate) }
            // The end of the text is an error too: that there is no further beginning.
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

    /// The private key of a text. The caller releases it.
    static func privateKey(
        in bytes: [UInt8], password: String?, _ subject: String
    ) throws(TLSError) -> OpaquePointer {
        let key: OpaquePointer? = withBIO(bytes) { bio in
            guard var password = password.map({ Array($0.utf8CString) }) else {
                return PEM_read_bio_PrivateKey(bio, nil, noPassword, nil)
            }
            // Without a callback the last argument is the password.
            return password.withUnsafeMutableBytes { PEM_read_bio_PrivateKey(bio, nil, nil, $0.baseAddress) }
        }
        guard let key else { throw OpenSSLErrors.configuration(subject) }
        return key
    }

    /// Calls `body` with a BIO that reads lent bytes, while this thread's queue of errors is empty.
    private static func withBIO<Result>(_ bytes: [UInt8], _ body: (OpaquePointer?) -> Result) -> Result {
        OpenSSLErrors.clear()
        return bytes.withUnsafeBytes { bytes in
            let bio = BIO_new_mem_buf(bytes.baseAddress, CInt(bytes.count))
            defer { BIO_free(bio) }
            return body(bio)
        }
    }
}

/// Says that there is no password. OpenSSL's own callback would ask on the terminal.
private func noPassword(
    _ buffer: UnsafeMutablePointer<CChar>?, _ size: CInt, _ isForWriting: CInt, _ context: UnsafeMutableRawPointer?
) -> CInt {
    -1
}
#endif
