import Dispatch
import Promises
import ReactorDispatch

@main enum OnlyDispatch {
    static func main() throws {
        let sum = Promise.value([1, 2, 3]).map(on: DispatchQueue.global()) { $0.reduce(0, +) }
        check(try hang(sum, timeout: .seconds(30)) == 6)
    }
}

func check(_ condition: Bool) { precondition(condition) }
