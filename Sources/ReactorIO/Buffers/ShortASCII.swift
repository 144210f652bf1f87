extension String {
    /// A text of at most 15 bytes of ASCII, which needs no allocation; `nil` for any other bytes.
    ///
    /// Most lines of protocols are short: numbers and commands. The validation of UTF-8, which any text goes through,
    /// takes twice as many instructions as all of this.
    @inline(__always)
    init?(shortASCII bytes: UnsafeRawBufferPointer) {
        guard bytes.count <= 15, Self.isASCII(bytes) else { return nil }
        self.init(unsafeUninitializedCapacity: 15) { text in
            UnsafeMutableRawBufferPointer(text).copyMemory(from: bytes)
            return bytes.count
        }
    }

    /// Of at most 16 bytes.
    @inline(__always)
    private static func isASCII(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let count = bytes.count
        // Two words that overlap where there are less than two.
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
