import Reactor

// Handles an event for each form of a pending read.

extension ConnectionReader.Demand {
    /// Reads the descriptor once.
    @inline(__always)
    func descriptorIsReadable(of connection: Connection) {
        switch self {
        case .chunk: ChunkLoop.descriptorIsReadable(of: connection)
        case .frame: connection.cold?.frames?.descriptorIsReadable()
        case .bytes(let limit): ByteRead.descriptorIsReadable(of: connection, Int(limit))
        // Only on the path `.filtered`.
        case .handshake: break
        }
    }

    /// Rejects `promise`, which the reader has given up.
    func reject(_ promise: PromiseCore, _ error: SystemError, at connection: Connection) {
        switch self {
        case .bytes: return promise.fulfill(ReadOutcome.failed(error))
        case .frame:
            connection.cold?.frames?.stopWaiting()
            return promise.inputDidArrive(connection.reported(error))
        case .chunk: _ = promise.ref.takeChunkStep()
        case .handshake: break
        }
        promise.reject(connection.reported(error))
    }
}
