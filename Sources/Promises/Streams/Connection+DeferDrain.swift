import Reactor

extension Connection {
    /// Says that something is under way for the peer, which neither a read nor the queue of writes shows: until `answer`
    /// has settled, whichever way, `Listener.drain` does not take this connection for idle. So long it is also kept: letting
    /// go of the last reference does not close it. A rejection of `answer` is as unhandled as before.
    /// - Returns: `answer`.
    @discardableResult
    @available(*, noasync, message: "an async function has no loop of its own")
    public func deferDrain<T>(until answer: Promise<T>) -> Promise<T> {
        watch(answer.core)
        return answer
    }

    /// The same for what cannot fail.
    @discardableResult
    @available(*, noasync, message: "an async function has no loop of its own")
    public func deferDrain<T>(until answer: Guarantee<T>) -> Guarantee<T> {
        watch(answer.core)
        return answer
    }

    private func watch(_ answer: PromiseCore) {
        loop.assertOwner()
        answer.watch(AnswerEnds(answer: AnswerUnderWay(self)))
    }
}

/// Something that a connection owes its peer, for as long as this lives.
private final class AnswerUnderWay {
    private let connection: Connection

    init(_ connection: Connection) {
        self.connection = connection
        connection.pendingAnswers += 1
    }

    deinit { connection.pendingAnswers -= 1 }
}

/// An answer has been given, or will never be: in the latter case this is let go without being run.
private struct AnswerEnds: Operation {
    typealias Input = Never
    typealias Output = Void
    let answer: AnswerUnderWay

    func run(_ source: AnySource, _ core: PromiseCore) { core.finish(()) }
}
