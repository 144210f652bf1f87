import Reactor

extension Thenable where T: Sendable {
    /// Transforms the value on `dispatcher`, and rejects with `PromiseError.compactMap` if `body` returns `nil`. See
    /// `map(on:)`.
    @inlinable @inline(__always)
    public func compactMap<U: Sendable>(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T) throws -> U?,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<U> {
        let unwrap: @Sendable (T) throws -> U = { value in
            if let result = try body(value) { return result }
            throw PromiseError.compactMap(value: PromiseError.shown(value), type: "\(U.self)")
        }
        return map("compactMap", on: dispatcher, unwrap, file, line)
    }
}
