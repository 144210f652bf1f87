import Reactor

/// Where in the source a promise was made.
public typealias CallSite = Reactor.CallSite
