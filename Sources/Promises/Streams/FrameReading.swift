/// What waits, on behalf of a read, for more of the input than the next bytes: for a frame. A connection makes it with the
/// first such read, and calls it on the loop's thread.
protocol FrameReading: AnyObject {
    /// Whether a loop over frames or lines waits, and not a single read.
    var isLoopWaiting: Bool { get }
    /// Reads the descriptor once.
    func descriptorIsReadable()
    /// The connection has buffered `count` bytes; at the end of the stream there are none.
    /// - Parameter ended: the promise of the read, if the end has taken it from the reader.
    func inputArrived(_ count: Int, ended: PromiseCore?)
    /// The read was rejected or cancelled, and waits no more.
    func waitDidEnd()
    func cancelTimer()
}
