/// How a promise came about, step by step, the oldest first: where the root was made, then each operator.
///
/// Taken down while `conf.trace` is on. Of a chain longer than 64 steps it keeps the first and at least the newest 32.
public struct Trace: Hashable, Sendable {
    /// One promise of the chain.
    public struct Step: Hashable, Sendable {
        /// What made it: `made` if that was by hand, otherwise the operator's name, such as `map`.
        public let operation: String
        /// The line of the call.
        public let origin: CallSite
        /// Its name, if it has one; see `Promise.named`.
        public let name: String?
        /// If its handler has returned a promise that is still pending: how that one came about.
        public let awaited: Trace?
    }

    /// The steps that are kept.
    public let steps: [Step]
    /// How many are missing after the first.
    public let omitted: Int
}

extension Trace: CustomStringConvertible {
    /// `made at App/Login.swift:12 → then at App/Login.swift:14 → map at App/Login.swift:17`
    public var description: String { text(namesLast: true) }

    /// The same, without the last promise's name where that stands elsewhere.
    func text(namesLast: Bool) -> String {
        var texts = steps.map { $0.text(isNamed: true) }
        if !namesLast, let last = steps.last { texts[texts.count - 1] = last.text(isNamed: false) }
        if omitted > 0 { texts.insert("… \(omitted) step\(omitted == 1 ? "" : "s") …", at: min(1, texts.count)) }
        return texts.joined(separator: " → ")
    }
}

extension Trace.Step: CustomStringConvertible {
    /// `then at App/Login.swift:14`, with the name in quotes and what it waits for in brackets.
    public var description: String { text(isNamed: true) }

    fileprivate func text(isNamed: Bool) -> String {
        let name = isNamed ? name.map { " \"\($0)\"" } : nil
        let place = origin.isKnown ? " at \(origin)" : ""
        return operation + place + (name ?? "") + (awaited.map { " [awaits: \($0)]" } ?? "")
    }
}
