extension Catchable {
    /// Rejected with an error that means "cancelled".
    @inlinable
    public var isCancelled: Bool { error?.isCancelled ?? false }
}

extension Promise {
    /// Rejected with an error that means "cancelled". Any thread. Whoever has asked this has not been told of an error.
    @inlinable
    public var isCancelled: Bool {
        guard case .failure(let error) = outcome else { return false }
        return error.isCancelled
    }
}
