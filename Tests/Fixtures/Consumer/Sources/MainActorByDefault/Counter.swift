import Promises

// Everything here belongs to the main actor unless declared otherwise.

final class Counter {
    private(set) var count = 0
    private let (changed, resolver) = Promise<Int>.pending()

    func add(_ number: Promise<Int>) -> Promise<Int> {
        number.map { number in
            self.count += number
            self.resolver.fulfill(self.count)
            return self.count
        }
    }

    var firstChange: Promise<Int> { changed }
}

@main enum MainActorByDefault {
    static func main() throws {
        let counter = Counter()
        let first = counter.firstChange
        let added = counter.add(after(.milliseconds(1)).map { 2 })
        check(try hang(added) == 2 && hang(first) == 2 && counter.count == 2)
    }
}

func check(_ condition: Bool) { precondition(condition) }
