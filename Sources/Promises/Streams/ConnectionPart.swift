import Reactor

/// A part of a connection that exists while it is used, and may have a timer.
protocol ConnectionPart: AnyObject {
    func cancelTimer()
}

/// Waits on behalf of a read for more than the next bytes: for a frame. A connection makes it with the first such read,
/// and calls it on the loop's thread.
protocol FrameReading: AnyObject {
    func cancelTimer(on loop: EventLoop)
    /// Whether a frame or line loop is waiting, not a single read.
    var isLoopWaiting: Bool { get }
    /// Reads the descriptor once.
    func descriptorIsReadable()
    /// Input has been buffered, or the stream has ended.
    /// - Parameters:
    ///   - count: the number of bytes; `.max` if a filter has delivered them, which are not counted; zero or less at
    ///     the end.
    ///   - ended: the promise of the read, if the end has taken it from the reader.
    func inputArrived(_ count: Int, ended: PromiseCore?)
    /// Ends the waiting loop.
    /// - Returns: false if there is none.
    func endWaitingLoop() -> Bool
    /// The read was rejected or cancelled, and waits no more.
    func stopWaiting()
}
