import Promises

/// A connection belongs to the loop on which it was made.
func connectionInTask(_ connection: Connection) {
    Task {  // error: risks causing data races
        connection.abort()
    }
}
