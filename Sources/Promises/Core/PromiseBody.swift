/// A function that makes a promise, and can be used as one that makes its core. A closure that calls the function would be a
/// block of memory of each connection.
@usableFromInline
struct PromiseBody<Value> {
    @usableFromInline let function: (RawSpan) throws -> Promise<Value>

    @inlinable
    init(_ function: @escaping (RawSpan) throws -> Promise<Value>) { self.function = function }

    @inlinable var core: CoreBody { CoreBody(functionOf: self) }
}
