import Promises
import Reactor

/// The part of a read, or of a loop over the input, that takes arrived bytes and returns how to continue. Called in an
/// event of the connection, or in a job.
@usableFromInline
protocol InputConsumer: ~Copyable {
    associatedtype Output
    /// The kind of input. `bytes`, `array` and `chunk` have one consumer each, which `Connection.receiveInput` names.
    /// Other forms may be shared.
    static var form: InputForm { get }
    /// The value if the stream ends between two frames; `nil` if that is an error.
    static var valueAtEnd: Output? { get }
    // Not counted: a loop retains it, and a waiting read need not; see `ConnectionInterest`.
    var connection: UnownedReference<Connection> { get }
    var heldBytes: Int { get }
    /// The expectation that `StreamError.endedEarly` names.
    var expectation: StreamError.Expectation { get }

    /// Takes bytes from `received`, and buffers the rest. If `received` is empty, takes buffered bytes.
    mutating func take(_ received: UnsafeRawBufferPointer) throws -> InputStep<Output>
    /// Returns true when more input may come; false if the stream ends here.
    func mayContinue() throws -> Bool
    /// - Returns: true if it has settled `core` in place of a rejection, and consumed a reference to it.
    func recover(from error: any Error, _ core: PromiseCore) -> Bool
}

/// The continuation of a consumer. `wait` and `again` are for loops only: `InputLoop.read` traps at them.
@usableFromInline
enum InputStep<Output> {
    case done(Output)
    /// Wait for at least this number of further bytes. For `InputForm.bytes` and `array`, receive at most this number.
    case needs(Int)
    /// Continue when the promise of the body is fulfilled.
    case wait(PromiseCore)
    /// There is enough input. Continue in a job, so that other connections have their turn first.
    case again
}

extension InputConsumer where Self: ~Copyable {
    @inlinable @inline(__always)
    var heldBytes: Int { 0 }
    @inlinable
    var expectation: StreamError.Expectation { .frame }
    @inlinable @inline(__always)
    func recover(from error: any Error, _ core: PromiseCore) -> Bool { false }
    @inlinable @inline(__always)
    func mayContinue() throws -> Bool { try connection.borrow { try $0.mayContinue(Self.form, expectation) } }
}

/// The operation of each promise that reads a connection. While the promise waits for input it is in
/// `ConnectionReader`, with this as its payload. `Connection.receiveInput` ends the wait.
@usableFromInline
struct InputLoop<Consumer: InputConsumer & ~Copyable>: ~Copyable, Operation {
    @usableFromInline typealias Input = Never
    @usableFromInline typealias Output = Consumer.Output
    @usableFromInline var consumer: Consumer

    @inlinable @inline(__always)
    init(_ consumer: consuming Consumer) { self.consumer = consumer }

    // MARK: Beginning

    /// Begins a loop, whose consumer is never called inside this call.
    @inlinable
    consuming func begin(_ core: PromiseCore) {
        core.retain()
        if consumer.connection.borrow({ $0.mustWait(Consumer.form) }) {
            wait(for: 1, core.ref, isInEvent: false)
        } else {
            core.enqueueAgain(self)
        }
    }

    // MARK: Continuing. Each consumes the running reference to `core`.

    /// Continues the loop if `source` is fulfilled; otherwise rejects the read. Called in a job, or when the body's
    /// promise has settled.
    @inlinable
    consuming func run(_ source: AnySource, _ core: PromiseCore) {
        // Keeps the connection alive: a failed registration releases this operation, perhaps with the last reference.
        let connection = consumer.connection.object
        if source.isFulfilled {
            proceed(core.ref, with: UnsafeRawBufferPointer(start: nil, count: 0), isInEvent: false)
        } else {
            fail(source.error, core.ref, source.reference)
        }
        withExtendedLifetime(connection) {}
    }

    @inlinable
    static func inputDidArrive(_ core: PromiseCore) {
        let received = core.payload.pointer(to: Self.self).pointee.consumer.connection.borrow { $0.takeReceived() }
        resume(core.ref, with: received ?? UnsafeRawBufferPointer(start: nil, count: 0), isInEvent: received != nil)
    }

    /// - Parameter isInEvent: true during the connection's event, which updates the interest afterwards.
    @inlinable @inline(__always)
    static func resume(_ core: CoreRef, with received: UnsafeRawBufferPointer, isInEvent: Bool) {
        core.takeWaiting(Self.self).proceed(core, with: received, isInEvent: isInEvent)
    }

    @inlinable @inline(__always)
    consuming func proceed(_ core: CoreRef, with received: UnsafeRawBufferPointer, isInEvent: Bool) {
        let step: InputStep<Consumer.Output>
        do { step = try consumer.take(received) } catch { return fail(error, core) }
        switch consume step {
        case .needs(let count): wait(for: count, core, isInEvent: isInEvent)
        case .wait(let next): core.object.wait(for: next, andRun: self)
        case .again: core.object.enqueueAgain(self)
        case .done(let value): finish(core, consume value)
        }
    }

    @inlinable @inline(__always)
    consuming func wait(for count: Int, _ core: CoreRef, isInEvent: Bool) {
        // `heldBytes` first, because this user code may cancel the promise, end the connection, or begin another read.
        let held = consumer.heldBytes
        // The promise may have been cancelled while its operation ran.
        guard core.borrow({ $0.isOpen }) else { return core.release() }
        do {
            guard try consumer.mayContinue() else { return finishAtEnd(core) }
        } catch { return fail(error, core) }
        let connection = consumer.connection
        core.storeWaiting(self)
        connection.borrow { $0.wait(core, Consumer.form, for: count, held: held, updatesInterest: !isInEvent) }
    }

    // MARK: Ending

    /// Called before the promise is settled, since releasing the consumer may run user code that cancels the promise.
    @inlinable @inline(__always)
    consuming func end() {}

    @inlinable @inline(__always)
    consuming func finish(_ core: CoreRef, _ value: consuming Consumer.Output) {
        end()
        core.finish(consume value)
    }

    @inlinable @inline(never)
    consuming func finishAtEnd(_ core: CoreRef) {
        if let value = Consumer.valueAtEnd { return finish(core, value) }
        let expectation = consumer.expectation
        fail(StreamError.endedEarly(expected: expectation, got: 0), core)
    }

    /// - Parameter source: the core that was rejected with `error`, if there is one.
    @inlinable @inline(never)
    consuming func fail(_ error: any Error, _ core: CoreRef, _ source: CoreRef? = nil) {
        if core.borrow({ consumer.recover(from: error, $0) }) { return }
        end()
        core.borrow {
            if Consumer.Output.self == Void.self, error is StopReading {
                $0.finish(())
            } else if let source {
                $0.finish(rejectedAs: source)
            } else {
                $0.finish(throwing: error)
            }
        }
    }

    /// Cancels the promise while it waits for input.
    @usableFromInline
    static func stop(_ core: PromiseCore) -> Bool {
        let connection = core.payload.pointer(to: Self.self).pointee.consumer.connection.object
        guard connection.withdrawRead(core) else { return false }
        // Last, since it releases the body and its captures.
        core.dropWaiting()
        return true
    }
}

extension InputLoop: Copyable where Consumer: Copyable {}

extension InputLoop where Consumer: Copyable {
    /// Begins a read, which settles at once if its input is buffered.
    @inlinable @inline(__always)
    static func read(_ consumer: Consumer) -> PromiseCore {
        var consumer = consumer
        do {
            let step = try consumer.take(UnsafeRawBufferPointer(start: nil, count: 0))
            switch consume step {
            // A copy would cost a retain and a release.
            case .done(let value): return PromiseCore.fulfilled(consume value)
            case .needs(let count): return InputLoop(consumer).wait(for: count)
            case .wait, .again: preconditionFailure("a read has no body")
            }
        } catch { return PromiseCore(error: error) }
    }

    @inlinable @inline(never)
    consuming func wait(for count: Int) -> PromiseCore {
        let core = PromiseCore.pending(.of(Self.self))
        core.retain()
        wait(for: count, core.ref, isInEvent: false)
        return core
    }
}
