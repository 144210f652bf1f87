extension Promise {
    /// Names the promise, in its descriptions and in all reports; the last name counts.
    ///
    /// Any thread. Costs some 200 bytes and less than a microsecond, and nothing where it is not used.
    /// `Promise<Void>.value` is one object for all, and keeps no name.
    /// - Returns: the same promise.
    @discardableResult
    public func named(_ name: String) -> Promise<T> {
        TraceRegistry.name(core, name, Self.self)
        return self
    }
}

extension Guarantee {
    /// Names the guarantee; see `Promise.named`.
    /// - Returns: the same guarantee.
    @discardableResult
    public func named(_ name: String) -> Guarantee<T> {
        TraceRegistry.name(core, name, Self.self)
        return self
    }
}
