import Glibc
import Reactor

/// The options after the value of a `SET`.
struct SetOptions {
    private(set) var timeToLive: Duration?
    private(set) var keepsDeadline = false
    /// `XX`: the key must exist; `NX`: it must not.
    private(set) var mustExist: Bool?
    /// `GET`: the old value is the answer.
    private(set) var returnsOld = false
    /// The option that sets the expiry.
    private var expiry: String?

    init(_ words: [[UInt8]]) throws(CommandError) {
        var words = words.makeIterator()
        while let word = words.next() {
            switch optionName(word) {
            case "nx" where mustExist != true: mustExist = false
            case "xx" where mustExist != false: mustExist = true
            case "get": returnsOld = true
            case let name where expiry ?? name == name: try addExpiry(name, &words)
            default: throw .syntax
            }
        }
    }

    private mutating func addExpiry(
        _ name: String, _ words: inout some IteratorProtocol<[UInt8]>
    ) throws(CommandError) {
        expiry = name
        if name == "keepttl" {
            keepsDeadline = true
            return
        }
        let units: [String: Duration] = ["ex": .seconds(1), "px": .milliseconds(1)]
        guard let unit = units[String(name.prefix(2))], ["", "at"].contains(name.dropFirst(2)), let word = words.next()
        else {
            throw .syntax
        }
        guard let number = parseInteger(word.span.bytes) else { throw .notInteger }
        guard number > 0, let time = Duration(number, inUnitsOf: unit) else { throw .invalidExpireTime(.set) }
        timeToLive = name.hasSuffix("at") ? time - timeOfDay : time
    }
}

/// The options after the time of an `EXPIRE`: the condition for setting it.
struct ExpireCondition {
    private var names: Set<String> = []

    init(_ words: [[UInt8]]) throws(CommandError) {
        for word in words {
            let name = optionName(word)
            guard ["nx", "xx", "gt", "lt"].contains(name) else {
                throw CommandError(text: "ERR Unsupported option \(excerpt(word))")
            }
            names.insert(name)
        }
        if names.contains("nx") && names.count > 1 {
            throw CommandError(text: "ERR NX and XX, GT or LT options at the same time are not compatible")
        }
        if names.isSuperset(of: ["gt", "lt"]) {
            throw CommandError(text: "ERR GT and LT options at the same time are not compatible")
        }
    }

    /// `true` if a key that expires at `current`, or never, is to expire at `deadline`.
    func allows(_ deadline: LoopInstant, insteadOf current: LoopInstant?) -> Bool {
        guard let current else { return names.isDisjoint(with: ["xx", "gt"]) }
        if names.contains("nx") || names.contains("gt") && deadline <= current { return false }
        return !names.contains("lt") || deadline < current
    }
}

/// The name of an option in lower case; empty if it is longer than every option's name, or not ASCII, since some other
/// characters compare equal to ASCII ones.
func optionName(_ word: [UInt8]) -> String {
    word.count > 16 || word.contains { $0 > 127 } ? "" : excerpt(word).lowercased()
}

/// The beginning of a word, for the text of an error.
func excerpt(_ word: some Collection<UInt8>) -> String { String(decoding: word.prefix(128), as: UTF8.self) }

/// The time since 1970.
private var timeOfDay: Duration {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
}

extension Duration {
    /// `count` units; `nil` near the limit of 64-bit milliseconds, where redis also refuses.
    init?(_ count: Int, inUnitsOf unit: Duration) {
        let milliseconds = count.multipliedReportingOverflow(by: Int(unit / .milliseconds(1)))
        guard !milliseconds.overflow, milliseconds.partialValue.magnitude < Int.max / 2 else { return nil }
        self = .milliseconds(milliseconds.partialValue)
    }
}
