import Promises

/// A plain class: mutable, shared by handlers, not Sendable.
final class Account {
    let name: String
    var balance: Int
    var history: [String] = []
    weak var partner: Account?

    init(_ name: String, balance: Int) {
        self.name = name
        self.balance = balance
    }

    /// A promise of a non-Sendable object.
    func deposit(_ amount: Int) -> Promise<Account> {
        after(.milliseconds(1)).map {
            guard amount > 0 else { throw Refusal.amount(amount) }
            self.balance += amount
            self.history.append("deposit of \(amount)")
            return self
        }
    }
}

enum Refusal: Error, Equatable {
    case amount(Int)
    case closed
}

/// The same with a protocol, a generic type and stored closures.
protocol Ledger: AnyObject {
    var entries: [String] { get set }
    func lookUp(_ name: String) -> Promise<Account>
}

final class Cache<Key: Hashable, Value>: CustomStringConvertible {
    private var pending: [Key: Promise<Value>] = [:]
    private let load: (Key) -> Promise<Value>
    var onMiss: (Key) -> Void = { _ in }

    init(load: @escaping (Key) -> Promise<Value>) { self.load = load }

    func value(for key: Key) -> Promise<Value> {
        if let promise = pending[key] { return promise }
        onMiss(key)
        let promise = load(key).recover { error -> Promise<Value> in
            self.pending[key] = nil
            throw error
        }
        pending[key] = promise
        return promise
    }

    var description: String { "\(pending.count) entries" }
}

final class Bank: Ledger {
    var entries: [String] = []
    var accounts: [String: Account] = [:]
    private lazy var cache = Cache<String, Account> { [unowned self] in self.open($0) }

    func lookUp(_ name: String) -> Promise<Account> { cache.value(for: name) }

    private func open(_ name: String) -> Promise<Account> {
        Promise { resolver in
            after(.milliseconds(5)).done { [weak self] in
                guard let self else { return resolver.reject(Refusal.closed) }
                let account = Account(name, balance: 0)
                accounts[name] = account
                resolver.fulfill(account)
            }
        }
    }
}
