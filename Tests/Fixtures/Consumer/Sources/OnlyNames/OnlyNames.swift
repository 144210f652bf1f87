import PromiseKitNames
import Promises

@main enum OnlyNames {
    static func main() throws {
        let results = when(resolved: Promise.value(1), Promise.value(2)).map { results in
            try results.map { try $0.get() }
        }
        check(try hang(results) == [1, 2])
    }
}

func check(_ condition: Bool) { precondition(condition) }
