@testable import PromisesTestSupport

extension SoakRound {
    /// The server's ways to echo. The last reads everything first, and then leaves the rest to `close`.
    enum Server: CaseIterable { case chain, chunks, lines, frames, pipe, whole }

    /// Serves until the listener is ended; fulfilled when the last connection is done.
    func serve(_ listener: Listener) -> Promise<Void> {
        if dice.once(in: 3) { return accept(from: listener) }
        let limit = dice.once(in: 3) ? 1 + dice.below(6) : .max
        let served = listener.serve(ServeOptions(maxConnections: limit)) { [self] in handle($0) }.asVoid()
        return watch(served, "serve").recover(policy: .allErrors) { [self] error in
            let isCancelled = error.isCancelled
            if !isCancelled { complain("serve: \(error)") }
            faults.allAreHarmed = true
            return Promise.value
        }
    }

    /// The same with one `accept` after another, some of them cancelled.
    private func accept(from listener: Listener) -> Promise<Void> {
        let mayCancel = dice.once(in: 3)
        // A connection that has arrived when its `accept` is cancelled is closed.
        if mayCancel { faults.allAreHarmed = true }
        var running: [Promise<Void>] = []
        let (done, resolver) = Promise<Void>.pending()
        func next() {
            let accepted = watch(listener.accept(), "accept")
            let timer = mayCancel ? net.loop.schedule(after: time(10)) { accepted.cancel() } : nil
            accepted.done { [self] connection in
                timer?.cancel()
                running.append(handle(connection).ensureThen { connection.close() })
                next()
            }.catch(policy: .allErrors) { [self] error in
                timer?.cancel()
                if error.isCancelled { return next() }
                let code = (error as? SystemError)?.code
                if code != ECANCELED && code != EBADF { complain("accept: \(error)") }
                when(resolved: running).done { _ in resolver.fulfill(()) }
            }
        }
        next()
        return done
    }

    /// Ends the listener, in one way or another.
    func end(_ listener: Listener, _ service: Promise<Void>) {
        switch dice.below(4) {
        case 0: listener.close()
        case 1: listener.close(drain: true)
        case 2: watch(listener.drain(deadline: time(50)).asPromise(), "drain").cauterize()
        default:
            if dice.once(in: 2) { service.cancel() }
            listener.close()
        }
    }

    // MARK: One connection

    private func handle(_ connection: Connection) -> Promise<Void> {
        handle(StreamEnd(connection), SoakConversation(client: connection.peerAddress))
    }

    func handle(_ end: StreamEnd, _ conversation: SoakConversation) -> Promise<Void> {
        if dice.once(in: 4) { end.output.writeWatermarks = (low: dice.below(1000), high: dice.below(3000)) }
        var work = watch(echo(end), "the echo")
        var timer: EventLoop.Timer?
        if dice.once(in: 5) {
            faults.harm(conversation)
            work = trouble(end, work, &timer)
        }
        return work.tapError(policy: .allErrors) { [self] error in
            if faults.isHarmed(conversation) { return }
            complain("the server at \(end.input): \(error) after \(end.input.bytesReceived) bytes")
        }.ensure { timer?.cancel() }
    }

    /// A disturbance from this side.
    func trouble(_ end: StreamEnd, _ work: Promise<Void>, _ timer: inout EventLoop.Timer?) -> Promise<Void> {
        let act: () -> Void
        switch dice.below(8) {
        case 0:
            dice.pick([end.input, end.output]).idleTimeout = time(30)
            return work
        case 1: return watch(work.timeout(time(30)), "a timeout")
        case 2: act = { end.abort() }
        case 3: act = { end.close().asPromise().cauterize() }
        case 4: act = { for connection in [end.output, end.input] { connection.close(linger: .zero) } }
        case 5: act = { end.output.shutdownWrite().ignoringErrors() }
        default: act = { work.cancel() }
        }
        timer = net.loop.schedule(after: time(30), act)
        return work
    }

    private func echo(_ end: StreamEnd) -> Promise<Void> {
        let (input, output) = (end.input, end.output)
        switch server {
        case .chain: return echoByChain(end, upTo: 1 + dice.below(dice.pick([3, 1000, 65536])))
        case .chunks: return input.forEachChunk { output.write($0) }
        case .lines: return input.forEachLine { output.write($0 + "\n") }
        case .frames: return echoByFrames(end, of: 1 + dice.below(dice.pick([3, 1000, 100_000])))
        case .whole:
            var all: [UInt8] = []
            return input.forEachChunk { chunk in chunk.withUnsafeBytes { all += $0 } }
                .map { output.write(all).ignoringErrors() }
        case .pipe: return pipe(from: input, to: output).asVoid()
        }
    }

    private func echoByChain(_ end: StreamEnd, upTo limit: Int) -> Promise<Void> {
        end.input.receive(upTo: limit).then { bytes -> Promise<Void> in
            bytes.isEmpty ? .value : end.output.write(bytes).then { self.echoByChain(end, upTo: limit) }
        }
    }

    private func echoByFrames(_ end: StreamEnd, of count: Int) -> Promise<Void> {
        func next() -> Promise<Void> {
            end.input.read(exactly: count).then { end.output.write($0) }.then { next() }
        }
        return next().recover(policy: .allErrors) { error -> Promise<Void> in
            guard case StreamError.endedEarly(_, let got) = error else { throw error }
            return got == 0 ? .value : end.input.read(exactly: got).then { end.output.write($0) }
        }
    }
}
