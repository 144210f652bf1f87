/// Decodes the percent escapes of a part of a URI: RFC 3986, section 2.1.
/// - Parameter isForm: whether `+` is a space, and an invalid escape stays as it is.
/// - Returns: `nil` if an escape is invalid.
func unescaped(_ text: some Collection<UInt8>, isForm: Bool = false) -> [UInt8]? {
    var bytes: [UInt8] = []
    var rest = text[...]
    while let byte = rest.popFirst() {
        switch byte {
        case UInt8(ascii: "%"):
            var digits = rest
            if let high = digits.popFirst().flatMap(hexadecimal), let low = digits.popFirst().flatMap(hexadecimal) {
                bytes.append(UInt8(high << 4 | low))
                rest = digits
            } else if isForm {
                bytes.append(byte)
            } else {
                return nil
            }
        case UInt8(ascii: "+") where isForm: bytes.append(0x20)
        default: bytes.append(byte)
        }
    }
    return bytes
}

/// Escapes what cannot be in a URI: bytes that are not visible ASCII characters.
func escaped(_ text: String) -> String {
    var bytes: [UInt8] = []
    let digits = Array("0123456789ABCDEF".utf8)
    for byte in text.utf8 {
        bytes += isVisible(byte) ? [byte] : [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
    }
    return String(decoding: bytes, as: UTF8.self)
}

let base64Digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

/// Base64: RFC 4648, section 4.
func base64(_ bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    for start in stride(from: 0, to: bytes.count, by: 3) {
        let group = bytes[start..<min(start + 3, bytes.count)]
        let bits = group.reduce(0) { $0 << 8 | UInt32($1) } << UInt32(8 * (3 - group.count))
        for index in 0..<4 {
            let digit = base64Digits[Int(bits >> UInt32(18 - 6 * index) & 63)]
            text.append(index <= group.count ? digit : UInt8(ascii: "="))
        }
    }
    return String(decoding: text, as: UTF8.self)
}
