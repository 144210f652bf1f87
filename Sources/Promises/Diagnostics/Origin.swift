import Reactor

/// The source location where a promise was made.
public typealias CallSite = Reactor.CallSite
