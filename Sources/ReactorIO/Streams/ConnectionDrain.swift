import Promises

/// How a drain ends a loop over frames.
@usableFromInline
package enum DrainRule {
    /// After the frame that completes the input from before the drain, once the pending answers have settled.
    case afterFrame
    /// When the connection is idle between two frames. A busy connection is ended by its protocol.
    case inPause
    /// When the connection is idle and the peer has been silent for a while: for a protocol that announces its end.
    case inSilence
}

/// Held by the connection's attachment from the beginning of the drain on.
struct ConnectionDrain {
    /// The number of bytes that had arrived when the drain began, including those in the kernel. Too large if a filter
    /// has yet to filter the latter: the next pause then ends the loop.
    let arrived: Int
    /// The position in the input at which a loop was idle, and ends.
    var end: Int?
    var hasEnded = false
    /// The promise for loops that read no further frame and wait for their answers.
    private var parked: (promise: Promise<Void>, resolver: Resolver<Void>)?

    init(arrived: Int) { self.arrived = arrived }

    /// Returns true when a loop ends at a position between two frames.
    func isOver(at position: Int, _ reader: borrowing ConnectionReader) -> Bool {
        if let end, position >= end { return true }
        // A new client's first request is answered.
        if position == 0 { return false }
        return reader.drainRule == .afterFrame && (reader.isLastCall || position >= arrived)
    }

    /// - Returns: a promise that `resumeLoop` fulfills.
    mutating func parkLoop() -> Promise<Void> {
        if let parked, parked.resolver.isPending { return parked.promise }
        let made = Promise<Void>.pending()
        parked = (made.promise, made.resolver)
        return made.promise
    }

    mutating func resumeLoop() { parked.take()?.resolver.fulfill(()) }
}

/// The pending promises of `deferDrain`.
///
/// If a promise was declared before a loop over frames began, or is the loop's own, the loop reads a part of that
/// request, so it reads on. Other promises are answers to the loop's frames: in a drain the loop reads no further
/// frame, and waits for these answers.
struct DeferredAnswers {
    private var loop: Int32 = 0
    /// The number of declarations after each loop, in ascending order of loops.
    private var pending: [(loop: Int32, count: Int)] = []

    var count: Int { pending.reduce(0) { $0 + $1.count } }

    mutating func numberOfNextLoop() -> Int32 {
        loop &+= 1
        return loop
    }

    /// - Returns: the argument for `remove`.
    mutating func add() -> Int32 {
        if pending.last?.loop == loop { pending[pending.count - 1].count += 1 } else { pending.append((loop, 1)) }
        return loop
    }

    mutating func remove(_ loop: Int32) {
        guard let index = pending.lastIndex(where: { $0.loop == loop }) else { return }
        pending[index].count -= 1
        if pending[index].count == 0 { pending.remove(at: index) }
    }

    /// Returns true when a promise is pending that was declared before `loop` began.
    func hasRequest(before loop: Int32) -> Bool { pending.first.map { $0.loop < loop } ?? false }
}

@usableFromInline
enum FrameBoundary {
    case goOn
    case end
    /// Read nothing until the promise has settled, and check again.
    case wait(PromiseCore)
}
