import Promises

/// A variable is an object too.
func variableInPipe(_ guarantee: Guarantee<Int>) {
    var sum = 0
    guarantee.pipe { result in
        sum += (try? result.get()) ?? 0  // error: mutation of captured var 'sum' in concurrently-executing code
    }
}
