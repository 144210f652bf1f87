/// A value that one thread passes to another one that waits for it.
final class Handover<Value: Sendable>: Sendable {
    private let latch = Latch()
    private let value = LockedValue<Value?>(nil)

    func give(_ value: Value) {
        self.value.withLock { $0 = value }
        latch.open()
    }

    /// Blocks the calling thread until there is a value.
    func take() -> Value {
        latch.wait()
        return value.withLock { $0! }
    }
}
