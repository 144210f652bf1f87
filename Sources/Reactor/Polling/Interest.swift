import CLinux
import ReactorLibc

/// A descriptor's user.
package protocol ReadinessHandler: AnyObject {
    /// Called when the descriptor is ready for `ready`, a part of the interest. An error or hang-up makes the whole
    /// interest ready, and the next system call gets the error.
    /// - Returns: the next interest; ignored if the handler has set the interest or closed the descriptor. The loop
    ///   sets it and passes on its reference to the handler, where `setInterest` would retain the handler again.
    func descriptorIsReady(_ ready: Interest) -> Interest

    func interestWasRefused(_ error: SystemError)

    /// Called when the loop ends, after the last event. The handler must release its closures, which may retain the
    /// handler.
    func loopWillEnd()

    func callSite(of ready: Interest) -> CallSite?

    /// The text that `keepAliveReasons` shows for the handler.
    var label: String { get }
}

extension ReadinessHandler {
    package func interestWasRefused(_ error: SystemError) {}
    package func callSite(of ready: Interest) -> CallSite? { nil }
    package var label: String { (self as? any CustomStringConvertible)?.description ?? "\(type(of: self))" }
}

/// The directions in which a descriptor is watched.
public struct Interest: OptionSet, Hashable, Sendable {
    /// The epoll bits: EPOLLIN, EPOLLOUT.
    public let rawValue: UInt32
    /// Creates an interest from an epoll(7) event's bits.
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// Readiness to read: data, end of input, or an error.
    public static var reading: Interest { Interest(rawValue: UInt32(clinux_EPOLLIN)) }
    /// Readiness to write: free space, or an error.
    public static var writing: Interest { Interest(rawValue: UInt32(clinux_EPOLLOUT)) }
}

extension Interest {
    /// EPOLLRDHUP: the peer has ended its side; unread input may remain. Reported as long as the handler wants it.
    package static var readHangUp: Interest { Interest(rawValue: UInt32(clinux_EPOLLRDHUP)) }
    /// EPOLLHUP: both sides have ended, or the peer has reset the connection.
    package static var hangUp: Interest { Interest(rawValue: UInt32(clinux_EPOLLHUP)) }
    /// EPOLLERR: a pending error.
    package static var error: Interest { Interest(rawValue: UInt32(clinux_EPOLLERR)) }
    /// `readHangUp`, `hangUp` and `error` (0x2018). Each is delivered only when the kernel reports it. An error or
    /// hang-up also makes reading and writing ready.
    @inlinable
    package static var peerGone: Interest { Interest(rawValue: 0x2018) }
}
