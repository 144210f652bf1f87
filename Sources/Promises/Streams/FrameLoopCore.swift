import Reactor

/// The part of a frame loop that its core uses.
@usableFromInline
class FrameLoopContext {
    @usableFromInline final let connection: Connection
    /// Whether the promise of the body is pending, so that a drain counts the connection as busy.
    @exclusivity(unchecked) @usableFromInline final var isAnswering = false
    /// Whether the reader has been notified of the end.
    @usableFromInline final var hasEnded = false

    @usableFromInline
    init(_ connection: Connection) {
        self.connection = connection
    }

    @usableFromInline
    final func beginAnswer() {
        isAnswering = true
        connection.pendingAnswers += 1
    }

    @usableFromInline
    final func endAnswer() {
        isAnswering = false
        connection.pendingAnswers -= 1
    }
}

/// The promise of a frame loop. While it waits for input, the connection's reader has it, and its payload holds its
/// operation, which does not run then.
// @unchecked: as PromiseCore.
@usableFromInline
final class FrameLoopCore: PromiseCore, @unchecked Sendable {
    @usableFromInline
    init(_ code: CoreCode) {
        super.init(state: .pending, loop: .ofThisThread, code: code)
        upstream.store(.taken)
    }

    /// It waits for input. The operation is a struct whose only property is the context.
    override func cancelProducer() -> Bool {
        payload.pointer(to: FrameLoopContext.self).pointee.connection.stop(self)
    }

    /// The reader has released it: it is cancelled.
    func dropLoop() {
        upstream.store(.taken)
        destroyOperation()
    }

    /// Runs the operation now. Consumes a reference to this core.
    func runNow() {
        upstream.store(.settled(PromiseCore.voidRef.retain().address, as: .fulfilled(isTrivial: true)))
        code(self, .run)
    }

    /// Runs the operation in a job, with the outcome of `source`.
    func resume(after source: PromiseCore) {
        upstream.store(.taken)
        source.attach(self)
    }
}

extension PromiseCore {
    /// The awaited input has arrived, or will not come. A single read settles, and a loop runs.
    func inputDidArrive(_ failure: (any Error)?) {
        if type(of: self) == FrameLoopCore.self {
            // Checked before; a conditional cast would count a reference.
            let loop = unsafeDowncast(self, to: FrameLoopCore.self)
            loop.resume(after: failure.map { PromiseCore(error: $0) } ?? PromiseCore.void)
        } else if let failure {
            reject(failure)
        } else {
            fulfill(())
        }
    }
}
