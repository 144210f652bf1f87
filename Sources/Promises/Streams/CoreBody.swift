/// The body of a loop over chunks: a function that makes the core of a promise.
@usableFromInline
struct CoreBody {
    @usableFromInline let function: (RawSpan) throws -> PromiseCore

    @inlinable
    init(_ function: @escaping (RawSpan) throws -> PromiseCore) { self.function = function }

    /// The same function as in `wrapper`, a struct of one function that makes a promise.
    // Sound because a promise is its core and nothing else: both functions return one reference, in the same way. They
    // are in structs, since a bare closure would first be wrapped in another one.
    @inlinable
    init<Wrapper>(functionOf wrapper: Wrapper) { self = unsafeBitCast(wrapper, to: CoreBody.self) }
}

/// A function that makes a promise, usable as one that makes its core. A closure that calls the function would allocate
/// a block per connection.
@usableFromInline
struct PromiseBody<Value> {
    @usableFromInline let function: (RawSpan) throws -> Promise<Value>

    @inlinable
    init(_ function: @escaping (RawSpan) throws -> Promise<Value>) { self.function = function }

    @inlinable var core: CoreBody { CoreBody(functionOf: self) }
}
