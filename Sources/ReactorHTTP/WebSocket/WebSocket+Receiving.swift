import Promises
import Reactor
import ReactorIO
import ReactorLibc

// The frame loop reads as long as the peer may send frames. It answers control frames, and hands messages to the
// pending `receive` or `forEach`, or queues them.

extension WebSocket {
    /// Receives the next message; `nil` when the peer or this side has closed, or the listener drains: see `peerClose`.
    ///
    /// Rejected with
    /// - `WebSocketError` if the peer breaks the protocol (the peer gets the error's code), or with code 1006 if the
    ///   connection ends without a close, or the peer is silent too long or does not read;
    /// - the connection's `SystemError`;
    /// - `EBUSY` while another `receive` or `forEach` is pending.
    public func receive() -> Promise<Message?> {
        // Not a frame loop with `map`: a cancellation between the two would lose a message.
        let (promise, resolver) = Promise<Message?>.pending()
        begin(OneMessage(resolver), resolver.onCancel)
        return promise
    }

    /// Calls `body` with each message, once the promise for the previous one is fulfilled, until the peer or this side
    /// closes or the listener drains.
    /// - Parameter body: called with each message. `StopReading` ends the loop.
    /// - Returns: a promise that is rejected with an error from `receive` or `body`.
    @inlinable
    public func forEach<Next: Thenable<Void>>(_ body: @escaping (Message) throws -> Next) -> Promise<Void> {
        forEachMessage { try body($0).asPromise() }
    }

    /// Calls `body` with each message without waiting in between; see the overload with promises.
    public func forEach(_ body: @escaping (Message) throws -> Void) -> Promise<Void> {
        forEachMessage { message in
            try body(message)
            return .value
        }
    }

    @usableFromInline
    func forEachMessage(_ body: @escaping (Message) throws -> Promise<Void>) -> Promise<Void> {
        let (promise, resolver) = Promise<Void>.pending()
        begin(EachMessage(body, resolver), resolver.onCancel)
        return promise
    }

    private func begin(_ receiver: Receiver, _ onCancel: (@escaping () -> Void) -> Void) {
        if openReceiver != nil {
            return receiver.end(SystemError(.read, EBUSY, detail: "another receive of the WebSocket waits"))
        }
        receivers += 1
        if decoder.waiting.isEmpty, ending == nil, hasEnded || hasSentClose { return receiver.end(failure.take()) }
        // The receiver was cancelled, but its job has not run.
        self.receiver?.answer?.cancel()
        self.receiver = receiver
        receiver.number = receivers
        // A weak reference to the receiver would slow down each message's reference counts.
        onCancel { [weak self, number = receivers] in
            guard let self, let receiver = self.receiver, receiver.number == number else { return }
            receiver.answer?.cancel()
            finish(receiver, nil)
        }
        // Handlers are always called from jobs.
        if !decoder.waiting.isEmpty || ending != nil { deliverLater() }
    }

    /// A `receive` or `forEach`. (One class around an enum of both costs six more reference counts per message.)
    class Receiver {
        final var number = 0
        /// The pending promise from the closure.
        final var answer: Promise<Void>?

        /// False once cancelled. A job tells the socket later.
        var isOpen: Bool { false }
        func take(_ message: Message) throws -> Promise<Void> { throw StopReading() }
        func end(_ error: (any Error)?) {}
    }

    private final class OneMessage: Receiver {
        private let resolver: Resolver<Message?>

        init(_ resolver: Resolver<Message?>) { self.resolver = resolver }

        override var isOpen: Bool { resolver.isPending }

        override func take(_ message: Message) throws -> Promise<Void> {
            resolver.fulfill(message)
            throw StopReading()
        }

        override func end(_ error: (any Error)?) {
            if let error { resolver.reject(error) } else { resolver.fulfill(nil) }
        }
    }

    private final class EachMessage: Receiver {
        private let body: (Message) throws -> Promise<Void>
        private let resolver: Resolver<Void>

        init(_ body: @escaping (Message) throws -> Promise<Void>, _ resolver: Resolver<Void>) {
            (self.body, self.resolver) = (body, resolver)
        }

        override var isOpen: Bool { resolver.isPending }

        override func take(_ message: Message) throws -> Promise<Void> { try body(message) }

        override func end(_ error: (any Error)?) {
            if let error { resolver.reject(error) } else { resolver.fulfill(()) }
        }
    }

    /// The receiver, unless cancelled.
    private var openReceiver: Receiver? { receiver.flatMap { $0.isOpen ? $0 : nil } }

    // MARK: Frames

    /// Reads frames until no more can come.
    /// - Parameter cancel: called at the end to cancel a conversation that has never received.
    func startReading(_ cancel: @escaping () -> Void = {}) {
        isReading = true
        let body = { [self] (event: WebSocketEvent, _: inout ByteReader) in endingInDrain(frameArrived(event)) }
        let frames = connection.forEachFrame(decoder, drainRule: .inPause, body, recover: nil)
        frames.map { nil as (any Error)? }.recover { .value($0) }.done { [self] error in
            framesEnded(with: error, cancel)
        }
    }

    /// In a drain, ends the frame loop after `answer`, except within a message or the closing handshake.
    private func endingInDrain(_ answer: Promise<Void>) -> Promise<Void> {
        guard connection.isDraining, connection.readsLastFrame, !hasSentClose, !decoder.isInsideMessage else {
            return answer
        }
        return answer.done { throw StopReading() }
    }

    private func frameArrived(_ event: WebSocketEvent) -> Promise<Void> {
        isAsked = false
        guard case .message(let message) = event, !hasSentClose else { return answer(event) }
        if let receiver, !isInBody, decoder.waiting.isEmpty, receiver.isOpen { return hand(message, to: receiver) }
        decoder.waiting.append(message)
        if hasRoom { return .value }
        let (promise, resolver) = Promise<Void>.pending()
        room = resolver
        watchForDrain()
        return promise
    }

    /// Polls for a drain, which the frame loop cannot notice while it reads nothing. An active receiver continues.
    private func watchForDrain() {
        after(.seconds(1)).done { [weak self] in
            guard let self, room != nil else { return }
            if receiver != nil && !connection.hearsLastCall || !connection.isDraining { return watchForDrain() }
            room.take()?.reject(StopReading())
        }
    }

    /// Handles everything but data messages.
    private func answer(_ event: WebSocketEvent) -> Promise<Void> {
        switch event {
        // Nothing may follow a close frame.
        case .ping(let payload) where !hasSentClose: return pong(payload)
        case .message, .ping, .signOfLife: return .value
        case .close(let close):
            peerClose = close
            ending = .closed(close.code)
            return Promise(error: StopReading())
        }
    }

    /// The reason why no more frames follow.
    ///
    /// The fields while a socket ends:
    ///
    /// | | `isReading` | `hasSentClose` | `ending` | `hasEnded` |
    /// | --- | --- | --- | --- | --- |
    /// | open | true | false | `nil` | false |
    /// | the peer has closed or failed, to be reported after its messages | false | false | set | false |
    /// | the end has been reported; `failure` is for the next `receive` | false | if the peer may read a close | `nil` | true |
    /// | a drain has been reported; the peer still has to answer | false | true | `nil` | false |
    /// | this side closes; `closing` waits for `onEnd` | true | true | `nil` | false |
    /// | this side has closed; no frame can follow | false | true | `nil` | true |
    enum Ending {
        case closed(UInt16)
        case drained
        case failed(any Error)
    }

    private func framesEnded(with error: (any Error)?, _ cancel: @escaping () -> Void) {
        isReading = false
        // After this side's close, the end is never an error.
        if hasSentClose { return didClose() }
        if case StreamError.timedOut(got: 0)? = error, !isAsked, !hasGivenUp {
            isAsked = true
            ping()
            return startReading(cancel)
        }
        if ending == nil { ending = error == nil && connection.isDraining ? .drained : .failed(reason(error)) }
        endIfReceived(cancel)
    }

    private func reason(_ error: (any Error)?) -> any Error {
        let slow = WebSocketError(1006, "the peer does not read")
        if hasGivenUp { return slow }
        if let failure = decoder.failure { return failure }
        switch error {
        case let error as SystemError where error.code == ETIMEDOUT && error.call == connection.writeCall: return slow
        case nil, StreamError.endedEarly?: return WebSocketError(1006, "the connection has ended")
        case StreamError.timedOut?: return WebSocketError(1006, "the peer has been silent for too long")
        case let error?: return error
        }
    }

    /// Reports the end once every message has been received. Without a receiver, waits five seconds.
    private func endIfReceived(_ cancel: @escaping () -> Void = {}) {
        if ending == nil { return }
        if decoder.waiting.isEmpty, !isInBody {
            // Pending answers can be sent only before the close.
            guard case .drained? = ending, let answers = connection.answersUnderWay() else { return end(cancel) }
            answers.ensure { [self] in endIfReceived(cancel) }.catch(policy: .allErrors) { _ in }
            return
        }
        if receiver != nil { return }
        after(.seconds(5)).done { [self] in if receiver == nil { end(cancel) } }
    }

    private func end(_ cancel: () -> Void = {}) {
        guard let ending = ending.take() else { return }
        var error: (any Error)?
        switch ending {
        case .closed(let code): sendClose(code)
        case .drained: sendClose(1001)
        case .failed(let failure):
            error = failure
            if let failure = failure as? WebSocketError, failure.code != 1006 { sendClose(failure.code) }
        }
        // A client answers a drain's close frame: see `clientDidClose`.
        if case .drained = ending {} else { hasEnded = true }
        if isClient { connection.close() }
        if let receiver = openReceiver { return finish(receiver, error) }
        failure = error
        if receivers == 0 { cancel() }
    }

    // MARK: Messages

    /// - Returns: the promise to wait for before the next frame, always fulfilled.
    private func hand(_ message: Message, to receiver: Receiver) -> Promise<Void> {
        isInBody = true
        let answer = firstly { try receiver.take(message) }
        if answer.isFulfilled {
            isInBody = false
            return answer
        }
        wait(for: answer, of: receiver)
        return .value
    }

    private func wait(for answer: Promise<Void>, of receiver: Receiver) {
        if let error = answer.error { return bodyEnded(with: error, of: receiver) }
        receiver.answer = answer
        // Reading continues, so the connection would look idle to a drain.
        connection.deferDrain(until: answer)
        answer.map { nil as (any Error)? }.recover { .value($0) }
            .done { [self] error in bodyEnded(with: error, of: receiver) }
    }

    private func bodyEnded(with error: (any Error)?, of receiver: Receiver) {
        isInBody = false
        receiver.answer = nil
        if let error { finish(receiver, error) }
        deliver()
    }

    func finish(_ receiver: Receiver, _ error: (any Error)?) {
        guard self.receiver === receiver else { return }
        self.receiver = nil
        receiver.end(error is StopReading ? nil : error)
        // After a failure, another receiver gets the rest.
        if ending != nil { endIfReceived() }
    }

    private func deliverLater() { Guarantee.value.done { [self] in deliver() } }

    private func deliver() {
        // There is time only for the pending answers.
        if case .drained? = ending, connection.hearsLastCall { decoder.waiting = WebSocketMessages() }
        // At most 64 per job, like a frame loop.
        var left = 64
        while let receiver = openReceiver, !isInBody, let message = decoder.waiting.popFirst() {
            _ = hand(message, to: receiver)
            left -= 1
            if left == 0 { return deliverLater() }
        }
        if hasRoom { room.take()?.fulfill(()) }
        guard decoder.waiting.isEmpty, !isInBody else { return }
        if ending != nil { return endIfReceived() }
        if hasEnded || hasSentClose && !isReading, let receiver = openReceiver {
            finish(receiver, failure.take())
        }
    }

    private var hasRoom: Bool { decoder.waiting.isEmpty || decoder.waiting.byteCount < decoder.limit }

    /// Drops the queue for this side's close.
    func dropMessages() {
        decoder.waiting = WebSocketMessages()
        room.take()?.fulfill(())
    }
}

/// Unreceived messages, in order.
struct WebSocketMessages {
    private var messages: [WebSocket.Message] = []
    private var first = 0
    /// The approximate size in memory.
    private(set) var byteCount = 0

    var isEmpty: Bool { first == messages.count }

    mutating func append(_ message: WebSocket.Message) {
        messages.append(message)
        byteCount += Self.size(message)
    }

    mutating func popFirst() -> WebSocket.Message? {
        if isEmpty { return nil }
        let message = messages[first]
        messages[first] = .bytes([])
        first += 1
        byteCount -= Self.size(message)
        // Removes the taken messages once they are half of the array.
        if first * 2 >= messages.count {
            messages.removeFirst(first)
            first = 0
        }
        return message
    }

    private static func size(_ message: WebSocket.Message) -> Int {
        switch message {
        case .text(let text): text.utf8.count + 64
        case .bytes(let bytes): bytes.capacity + 64
        }
    }
}
