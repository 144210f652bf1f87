import Promises
import Reactor

// PromiseKit names without a meaning here. The compiler refuses them, and suggests a replacement.

extension Configuration {
    /// Handlers run on the thread that attached them, so there is no default queue.
    @available(
        *, unavailable, message: "leave it out: handlers run on the thread that attached them, unless on: is given"
    )
    public var Q: (map: (any Dispatcher)?, return: (any Dispatcher)?) {
        get { (nil, nil) }
        set {}
    }

    /// See `Q`.
    @available(
        *, unavailable, message: "leave it out: handlers run on the thread that attached them, unless on: is given"
    )
    public var D: (map: (any Dispatcher)?, return: (any Dispatcher)?) {
        get { (nil, nil) }
        set {}
    }
}

/// Every promise can be cancelled.
@available(*, unavailable, renamed: "Promise", message: "every promise can be cancelled")
public typealias CancellablePromise<T> = Promise<T>

/// Every promise can be cancelled.
@available(*, unavailable, renamed: "Thenable", message: "every promise can be cancelled")
public typealias CancellableThenable = Thenable

/// Every promise can be cancelled.
@available(*, unavailable, renamed: "Catchable", message: "every promise can be cancelled")
public typealias CancellableCatchMixin = Catchable

extension Thenable {
    /// Every promise can be cancelled.
    @available(*, unavailable, message: "leave it out: every promise can be cancelled")
    public func cancellize() -> Self { self }
}

/// Renamed.
@available(*, unavailable, renamed: "Catchable")
public typealias CatchMixin = Catchable

/// Renamed. The case `noWinner` also has the errors.
@available(*, unavailable, renamed: "PromiseError")
public typealias PMKError = PromiseError

/// Renamed.
@available(*, unavailable, renamed: "Configuration")
public typealias PMKConfiguration = Configuration
