import Promises

/// A thenable may call its handlers on any thread: none that has only a `pipe` is a promise of an object.
struct Found: Thenable {
    let result: Result<Ledger, any Error>? = nil

    func pipe(to handler: @escaping @Sendable (Result<Ledger, any Error>) -> Void) {
        Task.detached {
            let ledger = Ledger()
            handler(.success(ledger))
            ledger.entries.append("there")
        }
    }

    func asPromise() -> Promise<Ledger> {
        Promise { seal in
            pipe { seal.resolve($0) }  // error: capture of 'seal' with non-Sendable type 'Resolver<Ledger>'
        }
    }
}
