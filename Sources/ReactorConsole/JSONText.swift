import Reactor

/// Writes JSON, RFC 8259, in ASCII, with escapes that also protect HTML and JavaScript.
struct JSONText {
    private(set) var text = ""
    private var needsComma = false

    private mutating func begin(_ name: String?) {
        if needsComma { text += "," }
        if let name {
            quote(name)
            text += ":"
        }
        needsComma = true
    }

    private mutating func nest(_ name: String?, _ open: String, _ close: String, _ body: (inout JSONText) -> Void) {
        begin(name)
        text += open
        needsComma = false
        body(&self)
        text += close
        needsComma = true
    }

    mutating func object(_ name: String? = nil, _ body: (inout JSONText) -> Void) { nest(name, "{", "}", body) }
    mutating func array(_ name: String? = nil, _ body: (inout JSONText) -> Void) { nest(name, "[", "]", body) }

    /// An array of objects.
    mutating func list<Element>(
        _ name: String, _ elements: [Element], _ body: (Element, inout JSONText) -> Void
    ) { array(name) { json in for element in elements { json.object { body(element, &$0) } } } }

    mutating func add(_ name: String?, _ value: CallSite?) { add(name, value.map { "\($0)" }) }

    mutating func add(_ name: String?, _ value: String?) {
        begin(name)
        if let value { quote(value) } else { text += "null" }
    }

    mutating func add(_ name: String?, _ value: Int?) {
        begin(name)
        text += value.map(String.init) ?? "null"
    }

    mutating func add(_ name: String?, _ value: Bool) {
        begin(name)
        text += value ? "true" : "false"
    }

    /// With three decimals; `null` without a number.
    mutating func add(_ name: String?, _ value: Double?) {
        begin(name)
        text += value.map { $0.isFinite ? decimal($0, 3) : "null" } ?? "null"
    }

    /// Nanoseconds as microseconds.
    mutating func add(_ name: String?, microseconds: Int64) { add(name, Double(microseconds) / 1000) }

    /// Nanoseconds as seconds with six decimals.
    mutating func add(_ name: String?, seconds: Int64?) {
        begin(name)
        text += seconds.map { decimal(Double($0) / 1e9, 6) } ?? "null"
    }

    private mutating func quote(_ value: String) {
        text += "\""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "<", ">", "&", "'", "\0"..<" ", "\u{7F}"...:
                for unit in UTF16.encode(scalar)! {
                    let digits = String(unit, radix: 16)
                    text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
                }
            default: text.unicodeScalars.append(scalar)
            }
        }
        text += "\""
    }
}

/// A number with this many decimals.
func decimal(_ value: Double, _ places: Int) -> String {
    guard value.isFinite, abs(value) < 1e15 else { return "-" }
    var scale = 1.0
    for _ in 0..<places { scale *= 10 }
    let whole = Int((abs(value) * scale).rounded())
    let (integer, fraction) = (whole / Int(scale), whole % Int(scale))
    let sign = value < 0 && whole > 0 ? "-" : ""
    if places == 0 { return sign + "\(integer)" }
    let digits = String(fraction)
    return sign + "\(integer)." + String(repeating: "0", count: places - digits.count) + digits
}
