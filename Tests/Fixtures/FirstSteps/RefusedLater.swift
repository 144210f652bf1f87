import Promises
import Reactor

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
