import Promises

/// Lines come on the loop of their connection.
func sequenceInTask(_ connection: Connection) {
    let lines = connection.lines
    Task {  // error: risks causing data races
        for try await line in lines { print(line) }
    }
}
