import CLinux
import ReactorLibc

/// A descriptor's user, notified when it is ready.
package protocol ReadinessHandler: AnyObject {
    /// Called when the descriptor is ready for `ready`, a part of the interest. An error or hang-up makes the whole
    /// interest ready, and the next system call gets the error.
    /// - Returns: the next interest, unless the handler has set it or closed the descriptor. The loop sets it and
    ///   passes its reference on, where `setInterest` would count one.
    func descriptorIsReady(_ ready: Interest) -> Interest

    func interestWasRefused(_ error: SystemError)

    /// Called when the loop ends; no more events follow. The handler must release its closures, which may retain the
    /// handler.
    func loopWillEnd()

    /// The call site of the closure for `ready`, if known.
    func callSite(of ready: Interest) -> CallSite?

    /// The handler's text in `keepAliveReasons`.
    var label: String { get }
}

extension ReadinessHandler {
    package func interestWasRefused(_ error: SystemError) {}
    package func callSite(of ready: Interest) -> CallSite? { nil }
    package var label: String { (self as? any CustomStringConvertible)?.description ?? "\(type(of: self))" }
}

/// The directions in which a descriptor is watched.
public struct Interest: OptionSet, Hashable, Sendable {
    /// The bits of epoll: EPOLLIN, EPOLLOUT.
    public let rawValue: UInt32
    /// The directions of an event of epoll(7).
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// Data, end of input, or an error to read.
    public static var reading: Interest { Interest(rawValue: UInt32(clinux_EPOLLIN)) }
    /// Room to write, or an error to report.
    public static var writing: Interest { Interest(rawValue: UInt32(clinux_EPOLLOUT)) }
}

extension Interest {
    /// EPOLLRDHUP: the peer has ended its side, with or without unread input. Reported as long as it is wanted.
    package static var readHangUp: Interest { Interest(rawValue: UInt32(clinux_EPOLLRDHUP)) }
    /// EPOLLHUP: both sides have ended, or the peer has reset.
    package static var hangUp: Interest { Interest(rawValue: UInt32(clinux_EPOLLHUP)) }
    /// EPOLLERR: an error to report.
    package static var error: Interest { Interest(rawValue: UInt32(clinux_EPOLLERR)) }
    /// `readHangUp`, `hangUp` and `error` (0x2018), each delivered only when the kernel reports it. An error or hang-up
    /// also makes reading and writing ready.
    @inlinable
    package static var peerGone: Interest { Interest(rawValue: 0x2018) }
}
