extension Thenable {
    /// Names the promise in its descriptions and in all reports. A later name replaces an earlier one.
    ///
    /// May be called on any thread. Costs about 200 bytes and less than a microsecond. `Promise<Void>.value` is one
    /// shared object, so it keeps no name.
    @discardableResult
    public func named(_ name: String) -> Self {
        Tracing.setName(name, of: asPromise().core, Self.self)
        return self
    }
}
