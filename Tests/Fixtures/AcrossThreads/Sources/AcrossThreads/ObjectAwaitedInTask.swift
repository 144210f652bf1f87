import Promises

/// The promise in a task, its resolver here: who settles it and who awaits it would be two.
func objectAwaitedInTask() {
    let (promise, resolver) = Promise<Ledger>.pending()
    Task {  // error: risks causing data races
        try await promise.value.entries.append("there")
    }
    resolver.fulfill(Ledger())
}

/// The same of a guarantee.
func guaranteeAwaitedInTask() {
    let (guarantee, seal) = Guarantee<Ledger>.pending()
    Task {  // error: risks causing data races
        await guarantee.value.entries.append("there")
    }
    seal(Ledger())
}

/// The caller of this function has the promise too.
func objectOfCallerAwaitedInTask(_ promise: Promise<Ledger>) {
    Task {  // error: risks causing data races
        try await promise.value.entries.append("there")
    }
}

func objectAwaitedBeside() async throws {
    let (promise, resolver) = Promise<Ledger>.pending()
    async let count = promise.value.entries.count  // error: risks causing data races
    resolver.fulfill(Ledger())
    _ = try await count
}
