import Workload

/// Swift Concurrency's rows, where they have a meaning.
public let all: [Workload] = []
