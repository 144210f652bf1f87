import Promises

/// The other operators, with closures that use objects of this thread.
func operators(_ bank: Bank, _ account: Account) -> Promise<Account> {
    var seen: [Account] = []
    var problems = 0
    account.partner = account
    return Promise.value(account)
        .compactMap { $0.partner }
        .get { partner in seen.append(partner) }
        .then { partner in partner.deposit(seen.count) }
        .tapError { _ in problems += 1 }
        .recover { error in
            bank.entries.append("\(error)")
            throw Refusal.closed
        }
        .recover(only: Refusal.closed) { Promise.value(account) }
        .recover(only: PromiseError.self) { error -> Promise<Account> in
            bank.entries.append("\(error)")
            return .value(account)
        }
        .get { $0.balance += problems }
}

/// Ends of chains that look at the error.
func endings(_ bank: Bank, _ account: Account) {
    var problems = 0
    account.deposit(0)
        .done { bank.accounts[$0.name] = $0 }
        .catch(only: Refusal.amount(0)) { problems += 1 }
        .catch(only: Refusal.self) { bank.entries.append("\($0)") }
        .catch { _ in account.history = [] }
        .finally { account.balance += problems }
    account.deposit(1).done { $0.balance += 1 }.cauterize()
}

/// Sequences of objects.
func sequences(_ bank: Bank) -> Promise<[Account]> {
    var visited: [Account] = []
    let names = Promise.value(["ann", "bob"])
    let accounts = names.map { names in
        for name in names { visited.append(Account(name, balance: visited.count)) }
        return visited
    }
    let rich = accounts.map { accounts in accounts.filter { $0.balance > visited.count } }
    let first = accounts.compactMap { accounts in accounts.first { $0 === visited.first } }
    let sorted = accounts.map { accounts in accounts.sorted { $0.balance < $1.balance } }
    return when(fulfilled: rich, first, sorted).map { rich, first, sorted in
        bank.entries.append(first.name)
        return rich + sorted
    }
}
