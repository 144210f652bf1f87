import Promises

/// Async functions await promises of objects, which stay where the function runs.
func settle(_ account: Promise<Account>, _ others: Guarantee<[Account]>) async throws -> Account {
    let account = try await account.value
    for other in await others.value {
        account.balance += other.balance
        other.balance = 0
    }
    account.history.append("settled")
    return account
}

/// An object with its own promises.
final class Branch {
    private let (opened, opening) = Promise<Account>.pending()
    private let (audited, audit) = Guarantee<Account>.pending()
    private var latest: Account?

    func open(_ name: String) {
        let account = Account(name, balance: 0)
        opening.fulfill(account)
        audit(account)
    }

    func deposit(_ amount: Int) async throws -> Int {
        let account = try await opened.value
        account.balance += amount
        latest = account
        return await audited.value.balance
    }
}

/// Created and awaited in one function.
func balance() async throws -> Int {
    let (promise, resolver) = Promise<Account>.pending()
    resolver.fulfill(Account("dora", balance: 1))
    let account = try await settle(promise, .value([]))
    account.partner = account
    return try await promise.value.balance
}

/// And the reverse.
func balances() -> Promise<Int> {
    var visits = 0
    return Promise { try await balance() }.then { balance in
        visits += balance
        return Guarantee { await Task.yield() }
    }.map { visits }
}
