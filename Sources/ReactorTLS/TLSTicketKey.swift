#if TLS
import COpenSSL
import Reactor

/// A key for session tickets: `TLSConfiguration.ticketKeys`.
///
/// Has the format of nginx's `ssl_session_ticket_key`: 80 bytes for AES-256 or 48 for AES-128, as from `openssl rand
/// 80`. The key decrypts recorded TLS 1.2 sessions that use its tickets, so replace it at least daily: put a new key in
/// front of the list, and remove the last one.
public struct TLSTicketKey: Hashable, Sendable {
    /// The key's name and its two parts. The name identifies the key in a ticket, and is not secret.
    private let secret: Secret

    /// - Throws: a `TLSError` with the cause `configuration` unless there are 80 or 48 bytes.
    public init(_ bytes: some Sequence<UInt8>) throws(TLSError) { try self.init(Secret(bytes)) }

    private init(_ secret: Secret) throws(TLSError) {
        if secret.count != 80 && secret.count != 48 {
            throw TLSError(.configuration, reason: "a ticket key of \(secret.count) bytes instead of 80 or 48")
        }
        self.secret = secret
    }

    /// Reads a file, now and on this thread.
    /// - Throws: a `TLSError` with the cause `configuration`, which names the file if it cannot be read.
    public init(file: String) throws(TLSError) { try self.init(try PEM.read(file: file)) }

    /// Makes a random key for the servers of one process.
    /// - Throws: a `TLSError` with the cause `configuration` if OpenSSL has no random bytes.
    public static func random() throws(TLSError) -> TLSTicketKey {
        OpenSSLErrors.clear()
        let secret = Secret(capacity: 80)
        let count = secret.append { RAND_priv_bytes($0.baseAddress, 80) == 1 ? 80 : 0 }
        if count == 0 { throw OpenSSLErrors.configuration("a ticket key") }
        return try TLSTicketKey(secret)
    }

    private func with<Result>(_ part: Range<Int>, _ body: (UnsafePointer<UInt8>?, _ count: Int) -> Result) -> Result {
        withExtendedLifetime(secret) {
            body(secret.bytes.bindMemory(to: UInt8.self).baseAddress.map { $0 + part.lowerBound }, part.count)
        }
    }

    /// The encryption part is last in AES-256 keys, first in AES-128 keys.
    private var authentication: Range<Int> { secret.count == 80 ? 16..<48 : 32..<48 }
    private var encryption: Range<Int> { secret.count == 80 ? 48..<80 : 16..<32 }

    private static let nameSize = 16

    private var name: [UInt8] { withExtendedLifetime(secret) { Array(secret.bytes[..<Self.nameSize]) } }

    // MARK: Callback of OpenSSL

    /// - Returns: 1, or -1 for an error.
    static func seal(
        with keys: [TLSTicketKey], _ name: UnsafeMutablePointer<UInt8>, _ vector: UnsafeMutablePointer<UInt8>,
        _ cipher: OpaquePointer, _ mac: OpaquePointer
    ) -> CInt {
        guard let key = keys.first, RAND_bytes(vector, EVP_MAX_IV_LENGTH) == 1 else { return -1 }
        for (index, byte) in key.name.enumerated() { name[index] = byte }
        let algorithm = key.algorithm
        let isReady = key.with(key.encryption) { bytes, _ in EVP_EncryptInit_ex2(cipher, algorithm, bytes, vector, nil)
        }
        return isReady == 1 && key.prepare(mac) ? 1 : -1
    }

    /// Prepares a ticket's decryption with the key that it names.
    /// - Returns: 0 if no key has the name, 1 to keep the ticket, 2 to issue a new one, or -1 for an error.
    static func open(
        with keys: [TLSTicketKey], _ name: UnsafeMutablePointer<UInt8>, _ vector: UnsafeMutablePointer<UInt8>,
        _ cipher: OpaquePointer, _ mac: OpaquePointer, mayKeep: Bool
    ) -> CInt {
        let found = UnsafeBufferPointer(start: name, count: nameSize)
        guard let index = keys.firstIndex(where: { $0.name.elementsEqual(found) }) else { return 0 }
        let key = keys[index]
        let isReady = key.with(key.encryption) { bytes, _ in
            EVP_DecryptInit_ex2(cipher, key.algorithm, bytes, vector, nil)
        }
        guard isReady == 1, key.prepare(mac) else { return -1 }
        return index == 0 && mayKeep ? 1 : 2
    }

    private var algorithm: OpaquePointer? { encryption.count == 32 ? EVP_aes_256_cbc() : EVP_aes_128_cbc() }

    private func prepare(_ mac: OpaquePointer) -> Bool {
        with(authentication) { copenssl_use_hmac_sha256(mac, $0, $1) == 1 }
    }
}

extension TLSTicketKey: CustomStringConvertible {
    /// The key's name, without secrets.
    public var description: String {
        let digits = name.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }
        return "ticket key \(digits.joined())"
    }
}

extension TLSTicketKey: CustomReflectable {
    /// A mirror without the secret parts, which `dump` would print.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
#endif
