import Workload

/// The library's own rows. Only public API, as a client in another module uses it.
public let all: [Workload] =
    making + chains + several + waiting + timers + hops + recursion + frames + steps + posts + leases + fetches

/// What the rows of recursion are compared with: the same steps, one after the other, of which none is inside another.
public let unnested: [Workload] = queueing
