#if TLS
import COpenSSL
import Synchronization

/// Counts the OpenSSL objects that are created while `counting` runs on this thread and are not yet released:
/// connections, contexts, sessions, certificates, keys and channels. This finds leaks without a leak checker, and in
/// each test separately.
final class OpenSSLObjects: Sendable {
    /// The kinds of objects that OpenSSL reports, by the number of their data.
    private static let kinds = [
        (CRYPTO_EX_INDEX_SSL, "SSL"), (CRYPTO_EX_INDEX_SSL_CTX, "SSL_CTX"),
        (CRYPTO_EX_INDEX_SSL_SESSION, "SSL_SESSION"),
        (CRYPTO_EX_INDEX_X509, "X509"), (CRYPTO_EX_INDEX_X509_STORE, "X509_STORE"),
        (CRYPTO_EX_INDEX_X509_STORE_CTX, "X509_STORE_CTX"), (CRYPTO_EX_INDEX_BIO, "BIO"),
        (CRYPTO_EX_INDEX_EVP_PKEY, "EVP_PKEY"),
    ]

    private let counts = Mutex([Int](repeating: 0, count: OpenSSLObjects.kinds.count))

    /// The objects that have not been released, by the names of their types.
    var remaining: [String: Int] {
        counts.withLock { counts in
            Dictionary(uniqueKeysWithValues: zip(Self.kinds.map(\.1), counts)).filter { $0.value != 0 }
        }
    }

    /// Counts the objects that `body` creates on this thread. They may be released anywhere and at any time.
    func counting<Result>(_ body: () throws -> Result) rethrows -> Result {
        _ = Self.areReported
        let outer = pthread_getspecific(Self.key)
        pthread_setspecific(Self.key, Unmanaged.passUnretained(self).toOpaque())
        defer { pthread_setspecific(Self.key, outer) }
        return try body()
    }

    /// The counter of a thread.
    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        pthread_key_create(&key, nil)
        return key
    }()

    /// True once OpenSSL reports objects.
    private static let areReported: Bool = {
        for (index, kind) in kinds.enumerated() {
            CRYPTO_get_ex_new_index(
                kind.0, index, nil,
                { _, _, data, slot, index, _ in
                    guard let found = pthread_getspecific(OpenSSLObjects.key) else { return }
                    let counter = Unmanaged<OpenSSLObjects>.fromOpaque(found)
                    counter.takeUnretainedValue().note(index, 1)
                    // Retained until the object is released.
                    CRYPTO_set_ex_data(data, slot, counter.retain().toOpaque())
                }, nil,
                { _, counter, _, _, index, _ in
                    guard let counter else { return }
                    Unmanaged<OpenSSLObjects>.fromOpaque(counter).takeRetainedValue().note(index, -1)
                })
        }
        return true
    }()

    private func note(_ index: Int, _ change: Int) { counts.withLock { $0[index] += change } }
}
#endif
