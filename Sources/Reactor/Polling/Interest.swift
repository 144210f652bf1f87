import CLinux
import ReactorLibc

/// An object that is notified when a descriptor is ready.
package protocol ReadinessHandler: AnyObject {
    /// Called when the descriptor is ready. `ready` is the part of the interest that has arrived. An error or a hang-up
    /// makes the whole interest ready: the system call that follows gets the error from the kernel.
    /// - Returns: the next interest, if the handler has not set it itself and the descriptor is open. The loop sets it
    ///   and passes its own reference on, where `setInterest` would count one.
    func descriptorIsReady(_ ready: Interest) -> Interest

    /// The kernel refused to register the result of `descriptorIsReady`.
    func interestWasRefused(_ error: SystemError)

    /// Called when the loop ends: no more events will be delivered. The handler must release its closures, which may
    /// retain the handler itself and would otherwise keep it alive forever.
    func loopWillEnd()

    /// The call site of the closure that is called for `ready`, if it is known.
    func callSite(of ready: Interest) -> CallSite?

    /// The text for this handler in `keepAliveReasons`.
    var label: String { get }
}

extension ReadinessHandler {
    package func interestWasRefused(_ error: SystemError) {}
    package func callSite(of ready: Interest) -> CallSite? { nil }
    package var label: String { (self as? any CustomStringConvertible)?.description ?? "\(type(of: self))" }
}

/// The directions in which a descriptor is watched.
public struct Interest: OptionSet, Hashable, Sendable {
    /// The set as bits of epoll: EPOLLIN, EPOLLOUT.
    public let rawValue: UInt32
    /// The directions of an event of epoll(7).
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// The descriptor has data, end of input, or an error to read.
    public static var reading: Interest { Interest(rawValue: UInt32(clinux_EPOLLIN)) }
    /// The descriptor has room to write, or an error to report.
    public static var writing: Interest { Interest(rawValue: UInt32(clinux_EPOLLOUT)) }
}

extension Interest {
    /// EPOLLRDHUP: the peer has ended its side, whether or not there is unread input. Once that has happened, it is
    /// reported for as long as it is wanted.
    package static var readHangUp: Interest { Interest(rawValue: UInt32(clinux_EPOLLRDHUP)) }
    /// EPOLLHUP: both sides have ended, or the peer has reset.
    package static var hangUp: Interest { Interest(rawValue: UInt32(clinux_EPOLLHUP)) }
    /// EPOLLERR: the descriptor has an error to report.
    package static var error: Interest { Interest(rawValue: UInt32(clinux_EPOLLERR)) }
    /// `readHangUp`, `hangUp` and `error` together (0x2018). Each is delivered only if the kernel has reported it. An
    /// error or a hang-up also makes reading and writing ready.
    @inlinable
    package static var peerGone: Interest { Interest(rawValue: 0x2018) }
}
