import Reactor

/// Writes JSON (RFC 8259) in ASCII, with escapes that make it safe in HTML and JavaScript.
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

    mutating func list<Element>(
        _ name: String, _ elements: [Element], _ body: (Element, inout JSONText) -> Void
    ) { array(name) { json in for element in elements { json.object { body(element, &$0) } } } }

    /// Adds a member, or without a name an element.
    mutating func add(_ name: String?, _ value: (any JSONValue)?) {
        begin(name)
        if let value { value.write(to: &text) } else { text += "null" }
    }

    mutating func add(_ members: KeyValuePairs<String, (any JSONValue)?>) {
        for (name, value) in members { add(name, value) }
    }

    private mutating func quote(_ name: String) { name.write(to: &text) }
}

protocol JSONValue { func write(to text: inout String) }

extension String: JSONValue {
    func write(to text: inout String) {
        text += "\""
        for scalar in unicodeScalars {
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

extension Int: JSONValue { func write(to text: inout String) { text += String(self) } }
extension Bool: JSONValue { func write(to text: inout String) { text += self ? "true" : "false" } }
extension CallSite: JSONValue { func write(to text: inout String) { "\(self)".write(to: &text) } }
extension Double: JSONValue {
    func write(to text: inout String) { text += isFinite ? decimal(self, 3) : "null" }
}

/// Nanoseconds, written as seconds with six decimals.
struct Seconds: JSONValue {
    let nanoseconds: Int64
    init?(_ nanoseconds: Int64?) {
        guard let nanoseconds else { return nil }
        self.nanoseconds = nanoseconds
    }
    func write(to text: inout String) { text += decimal(Double(nanoseconds) / 1e9, 6) }
}

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
