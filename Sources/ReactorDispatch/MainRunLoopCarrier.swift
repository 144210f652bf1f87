import CoreFoundation
import Dispatch
import Foundation
import Reactor

extension EventLoop {
    /// Lets the main run loop drive this loop, which is that of the main thread: `RunLoop.main.run()`,
    /// `waitForExpectations` of XCTest, and an app's main loop then run handlers, timers and connections too.
    ///
    /// ```swift
    /// let carrier = try EventLoop.current.carryByMainRunLoop()
    /// RunLoop.main.run()
    /// ```
    ///
    /// A source of Dispatch's main queue turns the loop when its descriptor is readable, and an observer of the run loop turns it
    /// before each wait, for what callbacks of the run loop attach. `dispatchMain()` does not do: on Linux it ends the
    /// main thread.
    /// - Returns: what carries the loop until it is cancelled or released.
    /// - Throws: the `SystemError` of opening the loop's descriptors.
    @available(*, noasync, message: "an async function has no loop of its own")
    public func carryByMainRunLoop() throws(SystemError) -> MainRunLoopCarrier {
        precondition(Thread.isMainThread, "carryByMainRunLoop must be called on the main thread")
        return try MainRunLoopCarrier(self)
    }
}

/// Drives the main thread's loop by the main run loop; see `EventLoop.carryByMainRunLoop`.
public final class MainRunLoopCarrier: LoopHandle {
    private let loop: EventLoop
    private let source: any DispatchSourceRead
    private let observer: CFRunLoopObserver

    fileprivate init(_ loop: EventLoop) throws(SystemError) {
        let fd = try loop.fileDescriptor
        self.loop = loop
        source = DispatchSource.makeReadSource(fileDescriptor: fd, queue: .main)
        // The main queue runs on the main thread, whose current loop is the one that is carried, unless code within
        // `withLoop` runs the run loop.
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
        repeat {
            do throws(SystemError) { try loop.turn(.poll) } catch {
                // The kernel refuses to report events. The loop's handlers find out by their own calls.
                return
            }
        } while loop.isReady
    }

    /// Ends the drive. The loop and what it has remain.
    /// - Returns: false if it had ended.
    @discardableResult
    public func cancel() -> Bool {
        if source.isCancelled { return false }
        source.cancel()
        CFRunLoopObserverInvalidate(observer)
        return true
    }

    /// Whether it drives the loop.
    public var isActive: Bool { !source.isCancelled }
}
