import Reactor

/// An object that settles promises when descriptors of the loop are ready, and that can stop working for one of them.
protocol IOProducer: AnyObject {
    /// Drops `promise`, which it has not settled yet.
    /// - Returns: false if it cannot.
    func stop(_ promise: PromiseCore) -> Bool
}

/// A promise that is settled when a descriptor is ready.
// @unchecked: the producer is only used on the loop's thread.
class IOPromise: PromiseCore, @unchecked Sendable {
    // The producer settles this promise before it is released, also when the loop ends, and is not called afterwards.
    private unowned let producer: any IOProducer

    init<Value>(_ type: Value.Type, _ producer: any IOProducer) {
        self.producer = producer
        super.init(state: State.pending, loop: EventLoop.addressOfThisThread) {
            PromiseCore.perform(Follow<Value>.self, $0, $1)
        }
    }

    /// A promise with an operation, which may wait for another promise from time to time.
    init<Op: Operation>(running type: Op.Type, _ producer: any IOProducer) {
        self.producer = producer
        super.init(state: State.pending, loop: EventLoop.addressOfThisThread) { PromiseCore.perform(Op.self, $0, $1) }
    }

    override func cancelProducer() -> Bool { producer.stop(self) }
}
