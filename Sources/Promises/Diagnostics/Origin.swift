import Reactor

/// Where in the source a promise was made.
public typealias Origin = Reactor.Origin
