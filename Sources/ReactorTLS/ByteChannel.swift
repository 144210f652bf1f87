#if TLS
import COpenSSL

/// The memory that OpenSSL reads and writes instead of a socket: the filter's lent bytes, and an array that the filter
/// sends. Empty between calls to the filter, so an idle connection holds no buffer.
final class ByteChannel {
    /// Received bytes, set only during the call that lends them.
    // `@exclusivity(unchecked)`: used on one thread, and no access makes calls.
    @exclusivity(unchecked) var input = UnsafeRawBufferPointer(start: nil, count: 0)
    /// Bytes for OpenSSL to send.
    @exclusivity(unchecked) var output: [UInt8] = []

    /// Makes the channel's BIO. The filter releases its `SSL`, and so the BIO, before the channel.
    func makeBIO() -> OpaquePointer? {
        guard let method = Self.method.pointer, let bio = BIO_new(method) else { return nil }
        BIO_set_data(bio, Unmanaged.passUnretained(self).toOpaque())
        BIO_set_init(bio, 1)
        return bio
    }

    /// Calls `body` with the channel of `bio`. The filter retains the channel while it calls OpenSSL.
    private static func with<Result>(_ bio: OpaquePointer, _ body: (ByteChannel) -> Result) -> Result {
        Unmanaged<ByteChannel>.fromOpaque(BIO_get_data(bio))._withUnsafeGuaranteedRef(body)
    }

    private func read(into buffer: UnsafeMutablePointer<CChar>, atMost count: Int) -> Int {
        let taken = min(count, input.count)
        if taken > 0 {
            let bytes = UnsafeRawBufferPointer(rebasing: input[..<taken])
            UnsafeMutableRawBufferPointer(start: buffer, count: taken).copyMemory(from: bytes)
            input = UnsafeRawBufferPointer(rebasing: input[taken...])
        }
        return taken
    }

    private static let method = Method()

    /// These BIOs' functions, for the life of the process.
    // @unchecked: made once before use, and never changed.
    private struct Method: @unchecked Sendable {
        let pointer: OpaquePointer?

        init() {
            pointer = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "swift-reactor")
            guard let pointer else { return }
            BIO_meth_set_read(pointer) { bio, buffer, count in
                guard let bio, let buffer, count > 0 else { return 0 }
                copenssl_clear_retry(bio)
                let taken = ByteChannel.with(bio) { $0.read(into: buffer, atMost: Int(count)) }
                if taken > 0 { return CInt(taken) }
                copenssl_retry_read(bio)
                return -1
            }
            BIO_meth_set_write(pointer) { bio, bytes, count in
                guard let bio, let bytes, count > 0 else { return 0 }
                copenssl_clear_retry(bio)
                let written = UnsafeRawBufferPointer(start: bytes, count: Int(count))
                ByteChannel.with(bio) { $0.output.append(contentsOf: written) }
                return count
            }
            BIO_meth_set_ctrl(pointer) { _, command, _, _ in command == BIO_CTRL_FLUSH ? 1 : 0 }
        }
    }
}
#endif
