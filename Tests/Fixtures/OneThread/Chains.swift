import Promises
import Reactor
import ReactorIO

/// Handlers that capture objects and variables of this thread, in every operator.
func chains(_ bank: any Ledger) -> Promise<Int> {
    var steps = 0
    var log: [String] = []
    let isDone = Flag()
    return firstly { bank.lookUp("ann") }
        .then { account in
            steps += 1
            return account.deposit(10)
        }
        .get { account in
            account.history.append("seen")
            bank.entries.append(account.name)
        }
        .tap { result in
            steps += 1
            if case .failure(let error) = result { log.append("\(error)") }
        }
        .map { account -> (Account, Int) in
            steps += 1
            return (account, account.balance)
        }
        .recover { error -> Promise<(Account, Int)> in
            log.append("\(error)")
            return bank.lookUp("nobody").map { ($0, 0) }
        }
        .ensure { isDone.value = true }
        .ensureThen {
            steps += 1
            return after(.milliseconds(1)).done { steps += 1 }
        }
        .map { account, balance in
            account.balance = balance + steps
            return account.balance
        }
}

final class Flag {
    var value = false
}

/// Ends of chains, and several at once.
func several(_ bank: Bank) -> Promise<[Account]> {
    var failures = 0
    let accounts = when(fulfilled: ["ann", "bob"].map { bank.lookUp($0) })
    accounts
        .done { accounts in bank.entries += accounts.map(\.name) }
        .catch { error in
            failures += 1
            bank.entries.append("\(error)")
        }
        .finally { failures += 1 }
    let mixed = when(fulfilled: accounts, after(.milliseconds(1)).map { bank }, Promise.value(Flag()))
    mixed.done { accounts, bank, flag in
        flag.value = accounts.count == bank.accounts.count
    }.catch { _ in failures += 1 }
    return race(accounts, after(.seconds(1)).then { Promise<[Account]>(error: PromiseError.timedOut) })
}

/// Promises with resolvers, and timers, signals and jobs of the loop.
func callbacks(_ bank: Bank) -> Promise<Account> {
    let (promise, resolver) = Promise<Account>.pending()
    let (guarantee, resolve) = Guarantee<Account>.pending()
    let account = Account("carl", balance: 1)
    var ticks = 0
    let timer = EventLoop.current.schedule(every: .milliseconds(1)) {
        ticks += 1
        account.balance += ticks
        if ticks == 3 { resolver.fulfill(account) }
    }
    EventLoop.current.enqueue {
        bank.entries.append("queued")
        resolve(account)
    }
    resolver.onCancel {
        bank.entries.append("cancelled")
        timer.cancel()
    }
    guarantee.done { $0.balance += 1 }
    return promise.ensure {
        timer.cancel()
        account.history.append("\(ticks)")
    }
}

/// Work that is retried, timed, and delayed.
func patience(_ account: Account) -> Promise<Account> {
    var attempts = 0
    var errors: [any Error] = []
    return retry(
        maxAttempts: 5, delay: .custom { attempt, _ in .milliseconds(account.balance + attempt) },
        while: { error in
            errors.append(error)
            return account.history.count < 5
        }
    ) { attempt in
        attempts += attempt
        return account.deposit(attempt - 1)
    }
    .delay(.milliseconds(1))
    .timeout(.seconds(1), error: Refusal.closed)
    .get { $0.balance += errors.count + attempts }
}

/// An endless loop, in constant memory.
func countDown(_ account: Account) -> Promise<Account> {
    account.balance -= 1
    guard account.balance > 0 else { return .value(account) }
    return after(.zero).then { countDown(account) }
}

/// A custom thenable.
final class Button: Thenable {
    private var presses = 0
    private var handlers: [(Result<Int, any Error>) -> Void] = []

    func press() {
        presses += 1
        let told = handlers
        handlers = []
        for handler in told { handler(.success(presses)) }
    }

    var result: Result<Int, any Error>? { presses == 0 ? nil : .success(presses) }

    func pipe(to handler: @escaping (Result<Int, any Error>) -> Void) {
        if let result { handler(result) } else { handlers.append(handler) }
    }

    func asPromise() -> Promise<Int> { Promise { seal in pipe { seal.resolve($0) } } }
}
