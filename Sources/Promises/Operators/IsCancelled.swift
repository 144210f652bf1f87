extension Catchable {
    /// Whether the promise is rejected with an error that means "cancelled".
    @inlinable
    public var isCancelled: Bool { error?.isCancelled ?? false }
}

extension Promise {
    /// Whether the promise is rejected with an error that means "cancelled". May be called on any thread. Reading it
    /// does not count as handling the error.
    @inlinable
    public var isCancelled: Bool {
        guard case .failure(let error) = outcome else { return false }
        return error.isCancelled
    }
}
