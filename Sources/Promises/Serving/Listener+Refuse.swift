import Glibc
import Reactor

// Clients that connect while the process has no free descriptor (`EMFILE`), if they are to be refused: see
// `Listener.refusesWithoutDescriptors`.

extension Listener {
    /// How many clients of one address are refused between two pauses.
    private static var refusalBudget: Int { 512 }

    /// Accepts the waiting clients, with the descriptor kept in reserve, and closes each at once.
    func refuseWaitingClients() {
        guard refusesWithoutDescriptors, let descriptor = reserve else { return openReserve() }
        reserve = nil
        loop.kernel.close(descriptor)
        for acceptSocket in acceptSockets {
            for _ in 0..<Self.refusalBudget {
                var storage = sockaddr_storage()
                let result = loop.kernel.accept(acceptSocket.socket.fd, &storage)
                // No client waits, or another thread has taken the descriptor. Other errors will occur again after the
                // pause.
                if result < 0 { break }
                loop.kernel.close(CInt(result))
                refusedConnections += 1
            }
        }
        openReserve()
    }

    /// Any descriptor will do. If none is free now, the next successful `accept` shows that there are some again.
    func openReserve() {
        guard refusesWithoutDescriptors, reserve == nil, !isClosed else { return }
        let result = loop.kernel.eventCreate()
        if result >= 0 { reserve = CInt(result) }
    }

    func closeReserve() {
        if let descriptor = reserve.take() { loop.closeDescriptor(descriptor) }
    }
}
