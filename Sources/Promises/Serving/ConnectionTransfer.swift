import Glibc
import Reactor

/// A connection that is given to another loop: on its way, and as long as it is served there. Its end is the connection's,
/// whatever has become of the loop.
// @unchecked: `accepted` is touched by the job that takes it, on the loop's thread, or at the end of this object; `isDone` and
// `isLingering` on that thread, and then; `destination` before the job is on its way, and afterwards only read.
final class ConnectionTransfer: ConnectionKeeper, @unchecked Sendable {
    private let service: GroupServer
    private var accepted: Accepted?
    /// Whether its handler has come to an end, and its descriptor is closed.
    private var isDone = false
    /// Whether its handler has come to an end, and its descriptor is not closed yet.
    private var isLingering = false
    var destination: LoopGroup.Member? {
        didSet {
            oldValue?.load.subtract(1, ordering: .relaxed)
            destination?.load.add(1, ordering: .relaxed)
        }
    }

    init(_ accepted: Accepted, _ service: GroupServer) {
        self.accepted = accepted
        self.service = service
    }

    deinit {
        // The loop has ended before it took it.
        if let accepted { _ = Glibc.close(accepted.fd) }
        destination?.load.subtract(1, ordering: .relaxed)
        if !isDone { service.account.countLost() }
        service.connectionDidEnd(wasLingering: isLingering)
    }

    func connectionDidBeginLingering() {
        isLingering = true
        service.connectionDidBeginLingering()
    }

    func connectionDidEnd() { isDone = true }

    func arrive() {
        guard let accepted = accepted.take(), let destination else { return }
        service.arrived(self, accepted, on: destination)
    }
}
