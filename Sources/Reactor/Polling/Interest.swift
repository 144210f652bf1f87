import CLinux
import Glibc

/// Is told when a descriptor it waits for is ready.
package protocol ReadinessHandler: AnyObject {
    /// `ready` holds what was waited for and has come. An error or a hang-up makes everything ready: the call that
    /// follows learns the truth from the kernel.
    func descriptorIsReady(_ ready: Interest)

    /// The loop ends: nothing will be reported any more. What the handler holds must go, or it would be held for ever
    /// by closures that it holds itself.
    func loopWillEnd()

    /// Where what it calls for `ready` was given to it, if that is known.
    func origin(of ready: Interest) -> CallSite?

    /// What it is, for people who ask what a loop waits for.
    var label: String { get }
}

extension ReadinessHandler {
    package func origin(of ready: Interest) -> CallSite? { nil }
    package var label: String { (self as? any CustomStringConvertible)?.description ?? "\(type(of: self))" }
}

/// What a descriptor is watched for.
public struct Interest: OptionSet, Hashable, Sendable {
    /// The bits.
    public let rawValue: UInt32
    /// A set of the given bits.
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// There is something to read, or the end, or an error to collect.
    public static var reading: Interest { Interest(rawValue: EPOLLIN.rawValue) }
    /// There is room to write, or an error to collect.
    public static var writing: Interest { Interest(rawValue: EPOLLOUT.rawValue) }
}
