@testable import PromisesTestSupport

extension SoakRound {
    /// A client of the library: it sends its text and receives it again. Settles when it is done, and is never
    /// rejected.
    func client(_ address: SocketAddress) -> Promise<Void> {
        let text = text()
        let isStopped = dice.once(in: 4)
        let isInside = dice.once(in: 4)
        let work = isInside ? converseInside(text) : converse(with: address, text)
        var timer: EventLoop.Timer?
        if isStopped { timer = net.loop.schedule(after: time(40)) { work.cancel() } }
        return watch(work, "a client").ensure { timer?.cancel() }.recover(policy: .allErrors) { _ in .value }
    }

    private func converse(with address: SocketAddress, _ text: SoakText) -> Promise<Void> {
        connections[stream.rawValue, default: 0] += 1
        let source = clientAddress()
        let timeout = dice.once(in: 8) ? time(20) : nil
        let beginning = after(time(20)).then { connect(to: address, timeout: timeout, from: source) }
        let connected = watch(beginning, "connect").tapError { [self] error in
            let isOurs = timeout != nil || faults.total > 0 || faults.allAreHarmed || isCrowded
            if !isOurs { complain("connect: \(error)") }
        }
        return connected.then { [self] connection in
            var conversation = connection.localAddress.map(SoakConversation.client)
            if address.isUnix && !namesClients { conversation = .nameless }
            return converse(StreamEnd(connection), conversation, text)
        }
    }

    /// The same without the listener: the other end is passed to the server.
    private func converseInside(_ text: SoakText) -> Promise<Void> {
        let stream = dice.pick(Stream.inside)
        connections[stream.rawValue, default: 0] += 1
        insides += 1
        let conversation = SoakConversation.inside(insides)
        let beginning = after(time(20)).map { [self] in try makeInside(stream, conversation) }
        let made = beginning.tapError { [self] error in
            if faults.total == 0 { complain("\(stream): \(error)") }
        }
        return made.then { [self] one, other in
            handle(other, conversation).ensureThen { other.close() }.ignoringErrors()
            return converse(one, conversation, text)
        }
    }

    /// A client whose conversation is unknown may be any of them, so it cannot be judged.
    private func converse(_ end: StreamEnd, _ conversation: SoakConversation?, _ text: SoakText) -> Promise<Void> {
        let isHarmed = { [faults] in conversation.map { faults.isHarmed($0) } ?? true }
        let writing = watch(say(text, end.output).then { end.output.shutdownWrite() }, "writing")
        let reading = watch(hear(text, end.input), "reading").done { [self] count in
            bytesOfClients += count
            if count == text.count { wholeClients += 1 }
            if count != text.count && !isHarmed() { complain("a client got \(count) of \(text.count) bytes") }
        }
        var work = watch(when(fulfilled: writing, reading).asVoid(), "a conversation")
        var timer: EventLoop.Timer?
        if dice.once(in: 5) {
            faults.harm(conversation)
            work = trouble(end, work, &timer)
        }
        return work.tapError(policy: .allErrors) { [self] error in
            if !isHarmed() && !error.isCancelled { complain("a conversation: \(error)") }
            // The server cannot know, and may take a cancelled client's reset for its own fault.
            faults.harm(conversation)
            end.abort()
        }.ensure { timer?.cancel() }.ensureThen { end.close() }
    }

    // MARK: Saying

    private func say(_ text: SoakText, _ connection: Connection) -> Promise<Void> {
        let size = 1 + dice.below(dice.pick([50, 5000, 100_000]))
        var place = 0
        func part() -> [UInt8]? {
            if place == text.count { return nil }
            defer { place = min(place + size, text.count) }
            return text.part(place, size)
        }
        func next() -> Promise<Void> { part().map { connection.write($0).then { next() } } ?? .value }
        func produce() -> Promise<Void> {
            var last = Promise<Void>.value
            repeat {
                guard let part = part() else { return last }
                last.ignoringErrors()
                last = connection.write(part)
            } while connection.isWritable
            return when(fulfilled: last, connection.writable()).then { _ in produce() }
        }
        switch dice.below(5) {
        case 0: return next()
        case 1: return forEach(sequence(state: ()) { _ in part() }) { connection.write($0) }
        case 2:
            // All at once, also in a hundred thousand writes.
            connection.writeQueueLimit = .max
            return when(fulfilled: sequence(state: ()) { _ in part() }.map { connection.write($0) })
        case 3: return connection.write(Array(sequence(state: ()) { _ in part() }))
        default: return produce()
        }
    }

    // MARK: Hearing

    /// Returns how much came before the end.
    private func hear(_ text: SoakText, _ connection: Connection) -> Promise<Int> {
        var count = 0
        let check = { [self] (bytes: UnsafeRawBufferPointer) in
            if !text.holds(bytes, at: count) { complain("a client was answered with other bytes at \(count)") }
            count += bytes.count
        }
        let limit = 1 + dice.below(dice.pick([5, 3000, 65536]))
        func next() -> Promise<Void> {
            connection.receive(upTo: limit).then { bytes -> Promise<Void> in
                bytes.withUnsafeBytes(check)
                return bytes.isEmpty ? .value : next()
            }
        }
        func frame() -> Promise<Void> {
            connection.read(exactly: limit).then { bytes -> Promise<Void> in
                bytes.withUnsafeBytes(check)
                return frame()
            }
        }
        let all: Promise<Void>
        switch dice.below(4) {
        case 0: all = connection.forEachChunk { $0.withUnsafeBytes(check) }
        case 1:
            all = frame().recover(policy: .allErrors) { error -> Promise<Void> in
                guard case StreamError.endedEarly = error else { throw error }
                return next()
            }
        case 2 where server == .lines:
            all = connection.forEachLine { Array(($0 + "\n").utf8).withUnsafeBytes(check) }
        default: all = next()
        }
        return all.map { count }
    }
}
