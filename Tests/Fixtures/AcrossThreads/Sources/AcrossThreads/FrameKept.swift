import Promises

/// The bytes of a frame are lent for the call of the body alone.
func frameKept(_ connection: Connection) -> Promise<Void> {
    connection.forEachFrame(lending: LineDecoder()) { _, bytes -> Promise<Void> in
        let kept = bytes.rest()  // error: lifetime-dependent variable 'kept' escapes its scope
        return connection.writable().then { connection.write(kept) }
    }
}
