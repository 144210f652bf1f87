#if TLS
import COpenSSL
import Reactor

// OpenSSL keeps a queue of errors per thread. A failed call appends to it and SSL_get_error reads it, so the queue must
// be empty before each call whose failure matters.

/// The errors of OpenSSL's calls on this thread.
enum OpenSSLErrors {
    /// Empties the queue, which is usually empty: clearing takes ten times as long as peeking.
    static func clear() { if ERR_peek_error() != 0 { ERR_clear_error() } }

    /// Empties the queue and returns its first error.
    static func takeFirst() -> UInt? {
        let first = ERR_get_error()
        ERR_clear_error()
        return first == 0 ? nil : first
    }

    static func text(_ error: UInt) -> String {
        if let reason = ERR_reason_error_string(error) { return String(cString: reason) }
        // Errors of system calls have no reason string.
        var buffer = [CChar](repeating: 0, count: 256)
        ERR_error_string_n(error, &buffer, buffer.count)
        return String(decoding: buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    /// Returns the error for a setting that OpenSSL refused.
    static func configuration(_ subject: String) -> TLSError {
        let reason = takeFirst().map(text) ?? "refused"
        return TLSError(.configuration, reason: "\(subject): \(reason)")
    }
}
#endif
