/// The promise of a queued write.
// @unchecked: like PromiseCore; the producer is used only on the loop's thread.
final class WritePromise: PromiseCore, @unchecked Sendable {
    // The producer settles this promise before it is released, also when the loop ends, and is not called afterwards.
    private unowned let producer: any IOProducer
    /// Its place in the queue.
    @exclusivity(unchecked) var number = 0

    init<Value>(_ type: Value.Type, _ producer: any IOProducer) {
        self.producer = producer
        super.init(state: .pending, loop: .ofThisThread, code: .of(Follow<Value>.self))
    }

    override func cancelProducer() -> Bool { producer.stop(self) }
}
