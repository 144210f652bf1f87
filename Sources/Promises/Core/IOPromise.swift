import Reactor

/// What settles promises from the loop's descriptors, and can be told that one of them is not wanted any more.
protocol IOProducer: AnyObject {
    /// Forgets `promise`, which it has not settled. False if it cannot.
    func stop(_ promise: PromiseCore) -> Bool
}

/// A promise that is settled when a descriptor is ready.
// @unchecked: the producer is only used on the loop's thread.
class IOPromise: PromiseCore, @unchecked Sendable {
    // It settles this promise before it goes, also at the end of the loop, and is not asked afterwards.
    private unowned let producer: any IOProducer

    init<Value>(_ type: Value.Type, _ producer: any IOProducer) {
        self.producer = producer
        super.init(state: State.pending, loop: EventLoop.addressOfThisThread) {
            PromiseCore.perform(Follow<Value>.self, $0, $1)
        }
    }

    /// One with an operation, that now and then waits for a promise instead.
    init<Op: Operation>(running type: Op.Type, _ producer: any IOProducer) {
        self.producer = producer
        super.init(state: State.pending, loop: EventLoop.addressOfThisThread) { PromiseCore.perform(Op.self, $0, $1) }
    }

    override func cancelProducer() -> Bool { producer.stop(self) }
}
