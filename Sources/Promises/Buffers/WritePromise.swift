/// The promise of a write that waits.
// @unchecked: as its class.
final class WritePromise: IOPromise, @unchecked Sendable {
    /// Its place in the queue.
    @exclusivity(unchecked) var number = 0
}
