import PromiseKitNames
import Promises
import Reactor
import ReactorIO

// type 'Thenable' has no member 'value'
func valueInThen() -> Promise<Int> { number().then { .value($0 + 1) } }

// type 'Thenable' has no member 'value'
func valueInThenWithoutADeclaredType() { number().then { .value($0 + 1) }.done { print($0) }.cauterize() }

// type 'Thenable' has no member 'value'
func valueOrPromise() -> Promise<Int> { number().then { $0 > 1 ? .value($0) : number() } }

// 'Thenable' cannot be constructed because it has no accessible initializers
func valueOrError() -> Promise<Int> { number().then { $0 > 1 ? .value($0) : .init(error: Failure()) } }

// cannot infer contextual base in reference to member 'value'
func nothingOrPromise() -> Promise<Void> { user().then { $0.name.isEmpty ? .value : save($0) } }

// type 'Thenable' has no member 'value'
func valueInThenMap() -> Promise<[Int]> { names().thenMap { .value($0.count) } }

// type 'Thenable' has no member 'value'
func valueInRecoverOnly() -> Promise<Int> { number().recover(only: Failure.self) { _ in .value(0) } }

// cannot infer contextual base in reference to member 'text'
func valueOfAnEnum() -> Promise<Reply> { after(.seconds(1)).then { .value(.text("x")) } }

// cannot infer contextual base in reference to member 'value'
func valueAfterAStatement() -> Promise<Int> {
    number().then { number in
        print(number)
        return .value(number + 1)
    }
}

// cannot infer contextual base in reference to member 'value'
func valueOnOnePath() -> Promise<Page> {
    number().then { number in
        guard number > 1 else { return .value(Page()) }
        return page()
    }
}

// cannot infer contextual base in reference to member 'value'
func valueOnOnePathOfThenMap() -> Promise<[Page]> {
    names().thenMap { name in
        if name.isEmpty { return .value(Page()) }
        return page(name)
    }
}

// cannot convert value of type 'Promise<Page>' to closure result type 'Guarantee<Page>'
func valueOnOnePathOfFirstly(_ isOffline: Bool) -> Promise<Page> {
    firstly {
        if isOffline { return .value(Page()) }
        return page()
    }
}

// cannot convert return expression of type 'Guarantee<Page>' to return type 'Promise<Page>'
func valueInRecover() -> Promise<Page> { firstly { page() }.recover { _ in .value(Page()) } }

// cannot convert return expression of type 'Guarantee<Page>' to return type 'Promise<Page>'
func valueAfterAStatementInRecover() -> Promise<Page> {
    page().recover { error in
        print(error)
        return .value(Page())
    }
}

// cannot infer contextual base in reference to member 'value'
func valueOrThrow() -> Promise<Page> {
    page().recover { error in
        if error is Failure { return .value(Page()) }
        throw error
    }
}

// cannot infer contextual base in reference to member 'value'
func valueAfterAStatementInRecoverOnly() -> Promise<Page> {
    page().recover(only: Failure.self) { error in
        print(error)
        return .value(Page())
    }
}

// type '()' cannot conform to 'Thenable'
func promiseOrGuarantee() -> Promise<Page> { number().then { if $0 > 1 { page() } else { cached() } } }

// type '()' cannot conform to 'Thenable'
func promiseOrGuaranteeInASwitch() -> Promise<Page> {
    number().then { number in
        switch number {
        case 1: page()
        default: cached()
        }
    }
}

// cannot convert value of type 'Guarantee<Page>' to closure result type 'Promise<Page>'
func promiseOrGuaranteeInStatements() -> Promise<Page> {
    number().then { number in
        if number > 1 { return page() }
        return cached()
    }
}

// type '()' cannot conform to 'Thenable'
func promiseOrGuaranteeInRecover() -> Promise<Page> {
    page().recover { if $0 is Failure { page("home") } else { cached() } }
}

// call can throw, but it is not marked with 'try' and the error is not handled
func waitForAGuarantee() -> Page { cached().wait() }

// value of type 'Guarantee<Void>' has no member 'ensure'
func ensureOfAGuarantee() { after(.seconds(1)).ensure { print("over") }.done { print("done") } }

// value of type 'Guarantee<Void>' has no member 'ensureThen'
func ensureThenOfAGuarantee() -> Guarantee<Void> { after(.seconds(1)).ensureThen { after(.zero) } }

// extra trailing closure passed in call
func finallyOnAPool(_ pool: ThreadPool) { number().done { print($0) }.cauterize().finally(on: pool) { print("over") } }

// extra trailing closure passed in call
func ensureThenOnAPool(_ pool: ThreadPool) -> Promise<Int> { number().ensureThen(on: pool) { .value } }

// extra trailing closure passed in call
func mapValuesOnAPool(_ pool: ThreadPool) -> Promise<[Int]> { names().mapValues(on: pool) { try parse($0) } }

// extra trailing closure passed in call
func compactMapValuesOnAPool(_ pool: ThreadPool) -> Promise<[Int]> { names().compactMapValues(on: pool) { Int($0) } }

// extra trailing closure passed in call
func filterValuesOnAPool(_ pool: ThreadPool) -> Promise<[String]> { names().filterValues(on: pool) { !$0.isEmpty } }

// generic parameter 'Next' could not be inferred
func thenMapOnAPool(_ pool: ThreadPool) -> Promise<[Int]> { names().thenMap(on: pool) { .value($0.count) } }

// no exact matches in call to instance method 'sortedValues'
func sortedValuesOnAPool(_ pool: ThreadPool) -> Promise<[String]> { names().sortedValues(on: pool) }

// cannot call value of non-function type 'Promise<String>'
func firstValueOnAPool(_ pool: ThreadPool) -> Promise<String> { names().firstValue(on: pool) { !$0.isEmpty } }

// What always compiled, and must go on doing so.

func callback() -> Promise<Int> { Promise { query($0.resolve) } }
func callbackWithoutADeclaredType() {
    Promise { seal in query { seal.resolve($0, $1) } }.done { print($0) }.cauterize()
}
func functionReference() -> Promise<Void> { user().then(save) }
func keyPath() -> Promise<String> { user().map(\.name) }
func cachedInsteadOfAnError() -> Promise<Page> { page().recover { _ in cached() } }
func guaranteeFromRecover() { page().recover { _ in .value(Page()) }.done { print($0) } }
func severalTypes() { when(fulfilled: user(), page()).done { print($0.name, $1.title) }.cauterize() }
func guaranteeBesidePromise() -> Promise<[Page]> { when(fulfilled: [page(), cached()]) }
func errorOfNoValue() -> Promise<Int> { .init(error: Failure()) }
func namedType() {
    number().then { number -> Promise<Page> in
        print(number)
        return page()
    }.done { print($0.title) }.cauterize()
}

// MARK: Handlers of serve

func handlersOfServe(_ listener: Listener, _ isBusy: Bool) {
    listener.serve { connection in
        if isBusy { connection.write("busy\n") } else { connection.forEachChunk { connection.write($0) } }
    }
    listener.serve { connection in
        switch connection.peerAddress {
        case nil: connection.write("hello\n")
        case let address?: connection.write("hello, \(address)\n")
        }
    }
    listener.serve { connection in
        if isBusy { return connection.write("busy\n") }
        return connection.forEachChunk { connection.write($0) }
    }
}
