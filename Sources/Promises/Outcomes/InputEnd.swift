/// The reason that a connection reads no further frame; see `Connection.inputEnd`.
public enum InputEnd: Hashable, Sendable {
    /// The peer has ended its side, and all that it sent has been read.
    case peerEnded
    /// The draining listener has ended an operator that reads all input. The peer may still read, and may have sent
    /// more.
    case drained
}
