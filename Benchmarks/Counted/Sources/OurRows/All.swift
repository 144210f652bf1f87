import Workload

/// The library's own rows, by public API only, as a client module uses it.
public let all: [Workload] =
    making + chains + several + waiting + timers + hops + recursion + frames + steps + posts + datagrams + leases
    + fetches

/// The baseline for the rows of recursion: the same steps in sequence, without nesting.
public let unnested: [Workload] = queueing
