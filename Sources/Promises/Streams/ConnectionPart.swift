import Reactor

/// A part of a connection that exists while it is used, and may have a timer.
protocol ConnectionPart: AnyObject {
    func cancelTimer()
}
