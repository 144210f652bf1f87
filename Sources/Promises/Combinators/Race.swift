/// Settles as the first of `thenables` to settle, be that a rejection. The others run on, and what becomes of them is
/// not reported. An empty list is rejected with `PromiseError.badInput`.
public func race<Each: Thenable>(_ thenables: [Each]) -> Promise<Each.T> {
    guard !thenables.isEmpty else {
        return Promise(Core(error: PromiseError.badInput("race of an empty list"), origin: nil))
    }
    let result = Core(root: Each.T.self)
    for thenable in thenables {
        thenable.asPromise().core.attach(Core(inlineAtHome: Contend<Each.T>(result, mayReject: true)))
    }
    return Promise(result)
}

/// Settles as the first of `thenables` to settle, be that a rejection; see the form with an array.
public func race<Each: Thenable>(_ thenables: Each...) -> Promise<Each.T> { race(thenables) }

/// Is fulfilled as the first of the guarantees. One that is abandoned does not count.
public func race<T>(_ first: Guarantee<T>, _ others: Guarantee<T>...) -> Guarantee<T> {
    let result = Core(root: T.self)
    for guarantee in [first] + others {
        guarantee.core.attach(Core(inlineAtHome: Contend<T>(result, mayReject: false)))
    }
    return Guarantee(result)
}

/// One contender's waiter: the first to claim the result settles it.
private struct Contend<T>: Operation {
    typealias Input = T
    typealias Output = Void
    let result: Core
    let mayReject: Bool

    init(_ result: Core, mayReject: Bool) {
        self.result = result
        self.mayReject = mayReject
    }

    consuming func run(_ source: Source<T>, _ core: Core) {
        if source.isFulfilled || mayReject, result.claim() {
            result.retain()
            result.finish(as: source)
        }
        core.finish(())
    }
}
