// A core whose operation waits for input, not for another core. The payload holds the operation; a connection holds the
// reference to the core. See `Operation.inputDidArrive`.

extension CoreRef {
    /// Makes the core wait for input. A cancellation calls the operation's `stop`.
    @inlinable @inline(__always)
    package func storeWaiting<Op: Operation & ~Copyable>(_ operation: consuming Op) {
        payload.store(operation)
        borrow { $0.sourceWord.store(.none) }
    }

    /// Takes the operation out, to continue it.
    @inlinable @inline(__always)
    package func takeWaiting<Op: Operation & ~Copyable>(_ type: Op.Type) -> Op {
        let operation = payload.take(Op.self)
        borrow { $0.sourceWord.store(.taken) }
        return operation
    }

    /// Continues the operation, since the input has arrived or will not come. Consumes a reference to the core.
    @inline(__always)
    package func inputDidArrive() { borrow { $0.code($0, .input) } }

    /// Runs the operation as if it had waited for the rejected `source`. Consumes a reference to the core.
    package func run(rejectedAs source: PromiseCore) {
        source.markHandled()
        borrow {
            $0.sourceWord.store(.settled(CoreRef.retaining(source).address, as: .rejected))
            $0.code($0, .run)
        }
    }
}

extension PromiseCore {
    package func dropWaiting() {
        sourceWord.store(.taken)
        dropTakenOperation()
    }

    package func willBeHandedOutAgain() { annotate(.isHandedOutAgain) }
}
