extension String {
    /// Makes a string from at most 15 ASCII bytes, without an allocation; `nil` for other bytes. Most protocol lines
    /// are short, and validating them as UTF-8 takes twice as many instructions.
    @inline(__always)
    init?(shortASCII bytes: UnsafeRawBufferPointer) {
        guard bytes.count <= 15, Self.isASCII(bytes) else { return nil }
        self.init(unsafeUninitializedCapacity: 15) { text in
            UnsafeMutableRawBufferPointer(text).copyMemory(from: bytes)
            return bytes.count
        }
    }

    @inline(__always)
    private static func isASCII(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let count = bytes.count
        // Loads two words, which overlap below 16 bytes.
        if count >= 8 {
            let words =
                bytes.loadUnaligned(as: UInt64.self) | bytes.loadUnaligned(fromByteOffset: count - 8, as: UInt64.self)
            return words & 0x8080_8080_8080_8080 == 0
        }
        if count >= 4 {
            let words =
                bytes.loadUnaligned(as: UInt32.self) | bytes.loadUnaligned(fromByteOffset: count - 4, as: UInt32.self)
            return words & 0x8080_8080 == 0
        }
        return bytes.allSatisfy { $0 < 0x80 }
    }
}
