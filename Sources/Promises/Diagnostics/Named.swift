extension Promise {
    /// Names the promise, in its descriptions and in all reports; the last name counts.
    ///
    /// Any thread. Costs some 200 bytes and less than a microsecond, and nothing where it is not used. `Promise<Void>.value` is one
    /// object for all, and keeps no name.
    /// - Returns: the same promise.
    @discardableResult
    public func named(_ name: String) -> Promise<T> {
        Records.name(core, name, Self.self)
        return self
    }
}

extension Guarantee {
    /// Names the guarantee; see `Promise.named`.
    /// - Returns: the same guarantee.
    @discardableResult
    public func named(_ name: String) -> Guarantee<T> {
        Records.name(core, name, Self.self)
        return self
    }
}

extension Core {
    /// What a description says before the value: `"login": `
    var label: String { provenance(origin: nil).name.map { "\"\($0)\": " } ?? "" }

    /// What a debug description says after the value: ` "login" (made at App/Login.swift:12 → …)`
    var remarks: String {
        let known = provenance(origin: nil)
        return (known.name.map { " \"\($0)\"" } ?? "") + (known.trace.map { " (\($0.text(namesLast: false)))" } ?? "")
    }
}
