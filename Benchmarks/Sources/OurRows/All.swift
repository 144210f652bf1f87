import Workload

/// The library's own rows. Only public API, as a client in another module uses it.
public let all: [Workload] = making + chains + several
