import Promises

@main enum OnlyPromises {
    static func main() throws {
        let limiter = Limiter(2)
        let squares = (1...4).map { number in limiter.run { after(.milliseconds(1)).map { number * number } } }
        let sum = when(fulfilled: squares).map { $0.reduce(0, +) }.timeout(.seconds(30))
        check(try hang(sum) == 30)
        check(try hang(Promise { await doubled(21) }) == 42)
    }

    private static func doubled(_ number: Int) async -> Int { number * 2 }
}

func check(_ condition: Bool) { precondition(condition) }
