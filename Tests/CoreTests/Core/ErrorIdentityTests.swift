@testable import PromisesTestSupport

/// An error that passes through an operation stays in its original box. Another box around it would add one level per
/// relay, and casting or releasing the error takes time proportional to its levels.
@Suite(.ownThread) struct ErrorIdentityTests {
    /// A thenable defined by the program, without a promise inside.
    private struct Outcome: Catchable {
        let result: Result<Int, any Error>?

        func pipe(to handler: @escaping @Sendable (Result<Int, any Error>) -> Void) { handler(result!) }

        func asPromise() -> Promise<Int> { Promise { seal in pipe { seal.resolve($0) } } }
    }

    /// Takes a rejected promise, and returns one rejected with the operation's error.
    struct Relay: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let pass: @Sendable (Promise<Int>) -> Promise<Int>

        init(_ name: String, _ pass: @escaping @Sendable (Promise<Int>) -> Promise<Int>) {
            testDescription = name
            self.pass = pass
        }
    }

    /// The word of an `any Error` is the address of its box. An optional, because a parameter of type `any Error` would
    /// be opened for the generic function.
    private static func box(_ error: (any Error)?) -> UInt { unsafeBitCast(error, to: UInt.self) }

    private static func settled(_ body: (Resolver<Int>) -> Void) -> Promise<Int> {
        let (promise, resolver) = Promise<Int>.pending()
        body(resolver)
        return promise
    }

    /// Not specialised when called through a value.
    @inline(never)
    private static func forward<Failure: Error>(_ result: Result<Int, Failure>, to resolver: Resolver<Int>) {
        resolver.resolve(result)
    }

    private static func caught(_ body: () throws -> Int) -> Promise<Int> {
        do { return .value(try body()) } catch { return Promise(error: error) }
    }

    static let relays: [Relay] = [
        Relay("resolve of a Result") { source in settled { $0.resolve(source.result!) } },
        Relay("resolve as a callback") { source in
            settled { resolver in
                let callback: (Result<Int, any Error>) -> Void = resolver.resolve
                callback(source.result!)
            }
        },
        Relay("resolve in generic code") { source in settled { forward(source.result!, to: $0) } },
        Relay("resolve of a value and an error") { source in settled { $0.resolve(nil, source.error) } },
        Relay("reject") { source in settled { $0.reject(source.error!) } },
        Relay("asPromise of a thenable") { Outcome(result: $0.result).asPromise() },
        Relay("Promise of a thenable") { Promise(Outcome(result: $0.result)) },
        Relay("then that returns a thenable") { source in
            let result = source.result
            return Promise.value(0).then { _ in Outcome(result: result) }
        },
        Relay("pipe") { source in
            let (promise, resolver) = Promise<Int>.pending()
            source.pipe { resolver.resolve($0) }
            return promise
        },
        Relay("tap") { source in
            let (promise, resolver) = Promise<Int>.pending()
            source.tap { resolver.resolve($0) }.ignoringErrors()
            return promise
        },
        Relay("map") { $0.map { $0 + 1 } },
        Relay("then") { source in Promise.value(0).then { _ in source } },
        Relay("throw in a handler") { source in Promise.value(0).map { _ in throw source.error! } },
        Relay("recover, which throws") { $0.recover { error -> Promise<Int> in throw error } },
        Relay("recover of any Error, which throws") {
            $0.recover(only: (any Error).self) { error -> Promise<Int> in throw error }
        },
        Relay("catch of any Error") { source in
            let (promise, resolver) = Promise<Int>.pending()
            source.catch(only: (any Error).self) { resolver.reject($0) }.cauterize()
            return promise
        },
        Relay("ensureThen") { $0.ensureThen { Guarantee.value } },
        Relay("timeout") { $0.timeout(.seconds(1)) },
        Relay("retry") { source in retry(maxAttempts: 2) { _ in source } },
        Relay("when") { when(fulfilled: [$0]).map { $0[0] } },
        Relay("when of a tuple") { when(fulfilled: $0, Promise.value(1)).map { $0.0 } },
        Relay("when of the resolved") { when(resolved: [$0]).map { try $0[0].get() } },
        Relay("race") { race([$0]) },
        Relay("map on a dispatcher") { $0.map(on: ThreadPool.shared) { $0 + 1 } },
        Relay("recover on a dispatcher") {
            $0.recover(on: ThreadPool.shared) { error -> Promise<Int> in throw error }
        },
        Relay("hang") { source in caught { try hang(source) } },
        Relay("hang of a thenable") { source in caught { try hang(Outcome(result: source.result).asPromise()) } },
        Relay("an async function") { source in Promise { try await source.value } },
    ]

    @Test(.inLoop, arguments: relays) func staysInItsBox(_ relay: Relay) throws {
        let error: any Error = Flaw(7)
        var promise = Promise<Int>(error: error)
        for _ in 0..<3 {
            promise = relay.pass(promise)
            _ = try? hang(promise)
        }
        expectEqual(Self.box(promise.error), Self.box(error))
    }

    @Test func aTypedErrorIsBoxedOnce() throws {
        let promise = Self.settled { $0.resolve(Result<Int, Flaw>.failure(Flaw(3))) }
        expectEqual(promise.flaw, Flaw(3))
        let again = Self.settled { $0.resolve(promise.result!) }
        expectEqual(Self.box(again.error), Self.box(promise.error))
    }
}
