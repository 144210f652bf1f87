import Promises
import Reactor
import ReactorIO
import Workload

let leases: [Workload] = [
    Workload("pool-lease", run: lease),
    Workload("pool-connection", run: leaseConnections),
]

private final class Session {}

/// An idle resource, lent and returned: the request, the call of the body, and the return to `hang`.
func lease(_ n: Int) {
    let pool = Pool { _ in .value(Session()) }
    for _ in 0..<n { try! hang(pool.with { _ in Promise<Void>.value }) }
    pool.close()
}

/// The same with a connection, which is watched while idle, and checked before it is lent.
func leaseConnections(_ n: Int) {
    let listener = try! Listener.bind("127.0.0.1:0")
    let pool = Pool<Connection>(to: .address(listener.localAddress))
    for _ in 0..<n { try! hang(pool.with { _ in Promise<Void>.value }) }
    pool.close()
    listener.close()
}
