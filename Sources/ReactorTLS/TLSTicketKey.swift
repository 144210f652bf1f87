#if TLS
import COpenSSL
import Reactor

/// A key for the tickets with which clients resume sessions: `TLSConfiguration.ticketKeys`.
///
/// The format is that of the files of nginx's `ssl_session_ticket_key`: 80 bytes for AES-256, or 48 for AES-128, such as
/// `openssl rand 80` prints. With the key, recorded sessions of TLS 1.2 whose tickets it has encrypted can be decrypted, so
/// replace it at least daily: put a new key in front of the list, and remove the last one.
public struct TLSTicketKey: Hashable, Sendable {
    /// Identifies the key in a ticket; it is not secret.
    private let name: [UInt8]
    private let authentication: [UInt8]
    private let encryption: [UInt8]

    /// - Throws: a `TLSError` with the cause `configuration` unless there are 80 or 48 bytes.
    public init(_ bytes: some Sequence<UInt8>) throws(TLSError) {
        let bytes = Array(bytes)
        name = Array(bytes.prefix(Self.nameSize))
        switch bytes.count {
        case 80:
            authentication = Array(bytes[16..<48])
            encryption = Array(bytes[48..<80])
        case 48:
            encryption = Array(bytes[16..<32])
            authentication = Array(bytes[32..<48])
        default:
            throw TLSError(.configuration, reason: "a ticket key of \(bytes.count) bytes instead of 80 or 48")
        }
    }

    /// Reads a file, now and on this thread.
    /// - Throws: a `TLSError` with the cause `configuration`, which names the file if it cannot be read.
    public init(file: String) throws(TLSError) { try self.init(try PEM.read(file: file)) }

    /// A new key, for servers of one process.
    /// - Throws: a `TLSError` with the cause `configuration` if OpenSSL has no random bytes.
    public static func random() throws(TLSError) -> TLSTicketKey {
        var bytes = [UInt8](repeating: 0, count: 80)
        OpenSSLErrors.clear()
        guard RAND_priv_bytes(&bytes, CInt(bytes.count)) == 1 else { throw OpenSSLErrors.configuration("a ticket key") }
        return try TLSTicketKey(bytes)
    }

    private static let nameSize = 16

    // MARK: Callback of OpenSSL

    /// Prepares the encryption of a ticket.
    /// - Returns: what OpenSSL's callback has to return: 1, or -1 for an error.
    static func seal(
        with keys: [TLSTicketKey], _ name: UnsafeMutablePointer<UInt8>, _ vector: UnsafeMutablePointer<UInt8>,
        _ cipher: OpaquePointer, _ mac: OpaquePointer
    ) -> CInt {
        guard let key = keys.first, RAND_bytes(vector, EVP_MAX_IV_LENGTH) == 1 else { return -1 }
        for (index, byte) in key.name.enumerated() { name[index] = byte }
        let algorithm = key.algorithm
        guard EVP_EncryptInit_ex2(cipher, algorithm, key.encryption, vector, nil) == 1, key.prepare(mac) else {
            return -1
        }
        return 1
    }

    /// Prepares the decryption of a ticket with the key that it names.
    /// - Returns: what OpenSSL's callback has to return: 0 if no key has the name, 1 to keep the ticket, 2 to give the client
    ///   a new one, or -1 for an error.
    static func open(
        with keys: [TLSTicketKey], _ name: UnsafeMutablePointer<UInt8>, _ vector: UnsafeMutablePointer<UInt8>,
        _ cipher: OpaquePointer, _ mac: OpaquePointer, mayKeep: Bool
    ) -> CInt {
        let found = UnsafeBufferPointer(start: name, count: nameSize)
        guard let index = keys.firstIndex(where: { $0.name.elementsEqual(found) }) else { return 0 }
        let key = keys[index]
        guard key.prepare(mac), EVP_DecryptInit_ex2(cipher, key.algorithm, key.encryption, vector, nil) == 1 else {
            return -1
        }
        return index == 0 && mayKeep ? 1 : 2
    }

    private var algorithm: OpaquePointer? { encryption.count == 32 ? EVP_aes_256_cbc() : EVP_aes_128_cbc() }

    private func prepare(_ mac: OpaquePointer) -> Bool {
        authentication.withUnsafeBufferPointer { copenssl_use_hmac_sha256(mac, $0.baseAddress, $0.count) == 1 }
    }
}

extension TLSTicketKey: CustomStringConvertible {
    /// The name of the key, and nothing secret.
    public var description: String {
        let digits = name.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }
        return "ticket key \(digits.joined())"
    }
}

extension TLSTicketKey: CustomReflectable {
    /// Without the secret parts, which `dump` would print.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
#endif
