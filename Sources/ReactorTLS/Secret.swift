#if TLS
import COpenSSL

/// Bytes of keys, passwords or their files, overwritten on release.
// @unchecked: only its creator changes it, before sharing it.
final class Secret: @unchecked Sendable {
    private(set) var memory: UnsafeMutableRawBufferPointer
    private(set) var count = 0

    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: memory[..<count]) }

    init(capacity: Int) { memory = .allocate(byteCount: capacity, alignment: 16) }

    convenience init(_ bytes: some Sequence<UInt8>) {
        self.init(capacity: max(bytes.underestimatedCount, 16))
        for byte in bytes {
            reserve(1)
            memory[count] = byte
            count += 1
        }
    }

    deinit { Self.release(memory) }

    /// Calls `body` with room for at least one byte at the end, and adds the returned count.
    @discardableResult
    func append(_ body: (UnsafeMutableRawBufferPointer) -> Int) -> Int {
        reserve(1)
        let added = body(UnsafeMutableRawBufferPointer(rebasing: memory[count...]))
        count += max(added, 0)
        return added
    }

    private func reserve(_ room: Int) {
        if memory.count - count >= room { return }
        let larger = UnsafeMutableRawBufferPointer.allocate(byteCount: 2 * memory.count, alignment: 16)
        larger.copyMemory(from: bytes)
        Self.release(memory)
        memory = larger
    }

    private static func release(_ memory: UnsafeMutableRawBufferPointer) {
        OPENSSL_cleanse(memory.baseAddress, memory.count)
        memory.deallocate()
    }
}

extension Secret: Hashable {
    static func == (one: Secret, other: Secret) -> Bool {
        one.count == other.count && CRYPTO_memcmp(one.bytes.baseAddress, other.bytes.baseAddress, one.count) == 0
    }

    func hash(into hasher: inout Hasher) { hasher.combine(bytes: bytes) }
}
#endif
