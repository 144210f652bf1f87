/// What is known of a promise that is reported: by which name, and where it comes from.
public struct Provenance: Hashable, Sendable {
    /// Its name, if it has one; see `Promise.named`.
    public let name: String?
    /// `Promise<Int>`, where that is known: of a promise that is waited for, was traced, or has a name.
    public let type: String?
    /// Where it was made, if that was by hand. Of a rejection: where the promise was made that was rejected first.
    public let origin: CallSite?
    /// The chain that leads to it, if it was made while `conf.trace` was on.
    public let trace: Trace?

    /// What a report of your own may say of a promise.
    public init(name: String? = nil, type: String? = nil, origin: CallSite? = nil, trace: Trace? = nil) {
        self.name = name
        self.type = type
        self.origin = origin
        self.trace = trace
    }

    /// Whether there is nothing to say beyond the type.
    var isUnknown: Bool { name == nil && origin == nil && trace == nil }

    /// `Promise<Int> "login" made at App/Login.swift:12 → map at App/Login.swift:14`
    var phrase: String {
        var words = [type ?? "promise"]
        if let name { words.append("\"\(name)\"") }
        if let trace, let first = trace.steps.first {
            words.append((first.isMaking ? "" : "of ") + trace.text(namesLast: false))
        } else if let origin {
            words.append("made at \(origin)")
        }
        return words.joined(separator: " ")
    }
}

extension Provenance: CustomStringConvertible {
    /// `the Promise<Int> "login" made at App/Login.swift:12 → map at App/Login.swift:14`, or as much of it as is known.
    public var description: String { (isUnknown ? "a " : "the ") + phrase }
}

extension Trace.Step {
    /// The operation of a promise that was made by hand.
    @usableFromInline static var making: StaticString { "made" }

    var isMaking: Bool { operation == Self.making.description }
}
