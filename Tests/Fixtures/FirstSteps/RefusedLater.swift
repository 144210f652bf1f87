import Promises
import Reactor
import ReactorIO

// What the compiler sees only when all types are right.

func forgottenReturnOfADeclaredType() -> Promise<Page> {
    user().then { user in
        print(user)
        page(user.name)  // warning: result of call to 'page' is unused
    }  // error: missing return in closure expected to return 'any Thenable<Page>'
}

struct Counter {
    var count = 0

    mutating func add(_ number: Promise<Int>) {
        number.done { count += $0 }.cauterize()  // error: escaping closure captures mutating 'self' parameter
    }
}

func laterReader(_ connection: Connection) -> Promise<Void> {
    connection.forEachFrame(LineDecoder()) { line, reader -> Promise<Void> in
        let later = after(.seconds(1))
        return later.then { connection.write(reader.rest()) }  // error: lifetime-dependent value escapes its scope
    }
}

func keptBytes(_ connection: Connection) -> Promise<Void> {
    connection.forEachFrame(LineDecoder()) { line, reader -> Promise<Void> in
        let bytes = reader.rest()  // error: lifetime-dependent variable 'bytes' escapes its scope
        return after(.seconds(1)).then { connection.write(bytes) }
    }
}

final class Store {
    var count = 0
    func add() async { count += 1 }
}

actor Shop {
    private let store = Store()
    func sell() async { await store.add() }  // error: sending 'self.store' risks causing data races
}
