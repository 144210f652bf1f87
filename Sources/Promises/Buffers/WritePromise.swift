/// The promise of a write that is queued.
// @unchecked: as its superclass.
final class WritePromise: IOPromise, @unchecked Sendable {
    /// Its place in the queue.
    @exclusivity(unchecked) var number = 0
}
