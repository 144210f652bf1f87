import Promises
import Reactor

func callbackOfNoType() {
    Promise { seal in query(seal.resolve) }.cauterize()  // error: generic parameter 'T' could not be inferred
}

func nothingSaysTheType() {
    number().compactMap { _ in nil }.cauterize()  // error: generic parameter 'U' could not be inferred
}

func genericResult() throws {
    let length = try hang(number().map { try decode($0) })  // error: generic parameter 'U' could not be inferred
    print(length)
}

func anotherErrorInTheClosure() throws {
    let half = try hang(
        number().compactMap { number in  // error: generic parameter 'U' could not be inferred
            if number % 2 == 1 { return nil }
            return halve(number)  // error: cannot find 'halve' in scope
        })
    print(half)
}

func printAfterStatements() {
    number().then { number in
        print(number)
        return page()
    }.done { print($0.title) }.cauterize()  // error: cannot infer type of closure parameter '$0'
}

func statementsInRetry() -> Promise<Int> {
    retry(maxAttempts: 2) { number in
        print(number)
        return .value(number)  // error: cannot infer contextual base in reference to member 'value'
    }
}

func forgottenReturn() {
    user().then { user in  // error: type '()' cannot conform to 'Thenable'
        print(user)
        page(user.name)
    }.cauterize()
}

func nothingReturned() {
    number().then { print($0) }.cauterize()  // error: type '()' cannot conform to 'Thenable'
}

func valueInsteadOfAPromiseInThen() {
    user().then { $0.name }.done { print($0) }.cauterize()  // error: type '()' cannot conform to 'Thenable'
}

func valueBehindStatementsInThen() {
    user().then { user in
        print(user)
        return user.name  // error: result value of type 'String' does not conform to closure result type 'Thenable'
    }.done { print($0) }.cauterize()
}

func valueInsteadOfAPromiseInHang() throws {
    let it = try hang(user().then { $0.name })  // error: failed to produce diagnostic | type of expression is ambiguous
    print(it)
}

func valueInsteadOfAPromise() -> Promise<Int> {
    number().recover { _ in 0 }  // error: cannot convert value of type 'Int' to closure result type 'any Thenable<Int>'
}

func valueFromDone() {
    _ = number().done { return $0 }  // error: cannot convert value of type 'Int' to closure result type 'Void'
}

func guaranteeInsteadOfAPromise() -> Promise<Page> {
    cached()  // error: cannot convert return expression of type 'Guarantee<Page>' to return type 'Promise<Page>'
}

func valueInsteadOfVoid() -> Promise<Void> {
    user()  // error: cannot convert return expression of type 'Promise<User>' to return type 'Promise<Void>'
}

func catchOfAGuarantee() {
    after(.seconds(1)).catch { print($0) }  // error: value of type 'Guarantee<Void>' has no member 'catch'
}

func catchInTheMiddle() {
    number().catch { print($0) }.done { print("over") }  // error: value of type 'Finalizer' has no member 'done'
}

func finallyOfAPromise() {
    number().finally { print("over") }  // error: value of type 'Promise<Int>' has no member 'finally'
}

func secondsAsANumber() {
    number().timeout(1).cauterize()  // error: cannot convert value of type 'Int' to expected argument type 'Duration'
}

func unhandled() {
    number().map { $0 + 1 }  // warning: result of call to 'map(_:file:line:)' is unused
}

func unhandledInDone() {
    user().done { save($0) }.cauterize()  // warning: result of call to 'save' is unused
}

func awaitedWithoutValue() async {
    _ = await number()  // warning: no 'async' operations occur within 'await' expression
}

func handlerInAnAsyncFunction() async {
    _ = number().map { $0 + 1 }  // error: instance method 'map' is unavailable from asynchronous contexts
}

func awaitInAHandler(_ seconds: Int) -> Promise<Int> {
    number().map {  // error: cannot pass function of type '(Int) async -> Int' to parameter
        await Task.yield()
        return $0
    }
}

func valueWithoutAwait() throws -> Int {
    try number().value  // error: 'async' property access in a function that does not support concurrency
}
