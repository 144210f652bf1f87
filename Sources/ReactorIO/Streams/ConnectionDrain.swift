import Promises

// Where the drain of a listener ends the loops over the input of a connection.

/// How a drain ends a loop over frames.
@usableFromInline
package enum DrainRule {
    /// After the frame at which all that had arrived before has been read, when its answers have left.
    case afterFrame
    /// When the connection is idle between two frames. A busy one ends itself, by its protocol.
    case inPause
    /// When the connection is idle and the peer has been silent for a while: a protocol that announces its end, with
    /// the answer to a further frame.
    case inSilence
}

/// The drain of a connection. Its attachment has it from the beginning of the drain on.
struct ConnectionDrain {
    /// The number of bytes that had arrived when it began, here and in the kernel. With a filter, the kernel's are not
    /// yet filtered: then it may be too large, and the next pause ends the loop.
    let arrived: Int
    /// The position in the input at which a loop was idle, and ends.
    var end: Int?
    /// True once it has ended a loop, or a read.
    var hasEnded = false
    /// For loops that read no further frame, and wait for their answers.
    private var parked: (promise: Promise<Void>, resolver: Resolver<Void>)?

    init(arrived: Int) { self.arrived = arrived }

    /// True when a loop ends at a position between two frames.
    func isOver(at position: Int, _ reader: borrowing ConnectionReader) -> Bool {
        if let end, position >= end { return true }
        // A new client's first request is answered.
        if position == 0 { return false }
        return reader.drainRule == .afterFrame && (reader.isLastCall || position >= arrived)
    }

    /// - Returns: a promise that `resumeLoop` fulfils.
    mutating func parkLoop() -> Promise<Void> {
        if let parked, parked.resolver.isPending { return parked.promise }
        let made = Promise<Void>.pending()
        parked = (made.promise, made.resolver)
        return made.promise
    }

    /// Parked loops look again whether they can end.
    mutating func resumeLoop() { parked.take()?.resolver.fulfill(()) }
}

/// The pending promises of `deferDrain`.
///
/// One that was declared before a loop over frames began, or with its promise, is a request of which the loop reads a
/// part: the loop reads on. Others are answers to its frames: in a drain it reads no further one, and waits for them.
struct DeferredAnswers {
    /// The number of the last loop that has begun.
    private var loop: Int32 = 0
    /// How many were declared after which loop, in ascending order.
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

    /// True when one is pending that was declared before `loop` began.
    func hasRequest(before loop: Int32) -> Bool { pending.first.map { $0.loop < loop } ?? false }
}

/// How a loop over frames continues after a frame.
@usableFromInline
enum FrameBoundary {
    case goOn
    case end
    /// It reads nothing until the promise has settled, and looks again.
    case wait(PromiseCore)
}
