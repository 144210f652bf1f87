import PromisesTestSupport

/// Bytes that show their position: the period is a prime near 64 KiB, so that no chunk fits another's place.
func pattern(_ count: Int, from start: Int = 0) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count)
    var offset = start % period.count
    while bytes.count < count {
        let next = period[offset...].prefix(count - bytes.count)
        bytes += next
        offset = (offset + next.count) % period.count
    }
    return bytes
}

private let period: [UInt8] = (0..<65521).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8) }

extension Connection {
    /// Writes `bytes` in pieces of `size`, one after the other, and ends this side.
    func send(_ bytes: [UInt8], inPiecesOf size: Int) -> Promise<Void> {
        let places = stride(from: 0, to: bytes.count, by: size)
        return forEach(Array(places)) { self.write(Array(bytes[$0...].prefix(size))) }.then { self.shutdownWrite() }
    }
}
