import CoreFoundation
import Dispatch
import Foundation
import Reactor

extension EventLoop {
    /// Makes the main run loop drive this event loop, the main thread's. Then `RunLoop.main.run()`, XCTest's
    /// `waitForExpectations` and an app's main loop also run handlers, timers and connections.
    ///
    /// ```swift
    /// let carrier = try EventLoop.current.carryByMainRunLoop()
    /// RunLoop.main.run()
    /// ```
    ///
    /// A Dispatch source on the main queue turns the event loop when the loop's descriptor is readable. A run loop
    /// observer turns it before each wait, for jobs from run loop callbacks. `dispatchMain()` does not work, because on
    /// Linux it ends the main thread.
    /// - Returns: a carrier that drives the loop until it is cancelled or released.
    /// - Throws: a `SystemError` from opening the loop's descriptors.
    @available(*, noasync, message: "an async function has no loop of its own")
    public func carryByMainRunLoop() throws(SystemError) -> MainRunLoopCarrier {
        precondition(Thread.isMainThread, "carryByMainRunLoop must be called on the main thread")
        return try MainRunLoopCarrier(self)
    }
}

/// Drives the main thread's event loop from the main run loop; see `EventLoop.carryByMainRunLoop`.
public final class MainRunLoopCarrier: LoopHandle {
    private let loop: EventLoop
    private let source: any DispatchSourceRead
    private let observer: CFRunLoopObserver

    fileprivate init(_ loop: EventLoop) throws(SystemError) {
        let fd = try loop.fileDescriptor
        self.loop = loop
        source = DispatchSource.makeReadSource(fileDescriptor: fd, queue: .main)
        // The carried loop is the current one on the main thread, unless code within `withLoop` runs the run loop.
        source.setEventHandler { Self.turn() }
        observer = CFRunLoopObserverCreateWithHandler(nil, CFRunLoopActivity.beforeWaiting.rawValue, true, 0) { _, _ in
            Self.turn()
        }
        CFRunLoopAddObserver(CFRunLoopGetMain(), observer, kCFRunLoopCommonModes)
        source.activate()
        Self.turn()
    }

    deinit { cancel() }

    private static func turn() {
        let loop = EventLoop.current
        // At most 16 turns, since handlers may enqueue others endlessly.
        for _ in 0..<16 {
            do throws(SystemError) { try loop.turn(.poll) } catch {
                // The kernel refuses to report events. Handlers notice in their own calls.
                return
            }
            if !loop.isReady { return }
        }
        // Makes the run loop call the observer again.
        CFRunLoopWakeUp(CFRunLoopGetMain())
    }

    /// Stops driving the loop. The loop and its contents remain.
    /// - Returns: false if it had stopped before.
    @discardableResult
    public func cancel() -> Bool {
        if source.isCancelled { return false }
        source.cancel()
        CFRunLoopObserverInvalidate(observer)
        return true
    }

    /// True while this drives the loop.
    public var isActive: Bool { !source.isCancelled }
}
