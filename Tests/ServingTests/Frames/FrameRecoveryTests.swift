@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

struct FrameRecoveryTests {
    private struct Refused: Error, Equatable {}

    enum Origin: CaseIterable { case decoder, body, answer, laterAnswer, limitOfTime }

    @Test(.network(.virtual), arguments: Origin.allCases) func theErrorReachesTheClosureOnceWhateverItComesFrom(
        _ origin: Origin
    ) throws {
        let (a, b) = try Connection.pair()
        if origin == .limitOfTime { a.frameTimeouts = FrameTimeouts(idle: .seconds(1)) }
        var errors: [any Error] = []
        let all = a.forEachFrame(LineDecoder(limit: origin == .decoder ? 4 : 64)) { _, _ -> Promise<Void> in
            switch origin {
            case .body: throw Refused()
            case .answer: return Promise(error: Refused())
            case .laterAnswer: return after(.milliseconds(10)).done { throw Refused() }
            case .decoder, .limitOfTime: return .value
            }
        } recover: { error in
            errors.append(error)
            return a.write("refused")
        }
        if origin != .limitOfTime { try hang(b.write("a line\n"), timeout: patience) }
        try hang(all, timeout: patience)
        expectEqual(errors.count, 1)
        switch origin {
        case .decoder: expectEqual(errors.first as? StreamError, .limitExceeded(limit: 4))
        case .body, .answer, .laterAnswer: expectEqual(errors.first as? Refused, Refused())
        case .limitOfTime: expectEqual(errors.first as? StreamError, .timedOut(got: 0))
        }
        expectEqual(try hang(b.read(), timeout: patience), .bytes(Array("refused".utf8)))
    }

    @Test(.network) func anOrderlyEndIsNoError() throws {
        for stops in [false, true] {
            let (a, b) = try Connection.pair()
            let all = a.forEachFrame(LineDecoder(limit: 64)) { _, _ -> Promise<Void> in
                if stops { throw StopReading() }
                return .value
            } recover: { error in
                Issue.record("\(error)")
                return .value
            }
            try hang(b.write("a line\n").then { stops ? .value : b.shutdownWrite() }, timeout: patience)
            try hang(all, timeout: patience)
        }
    }

    @Test(.network(.virtual)) func theResultFollowsTheClosure() throws {
        for isThrown in [false, true] {
            let (a, b) = try Connection.pair()
            let all = a.forEachFrame(LineDecoder(limit: 4)) { _, _ in
                Promise<Void>.value
            } recover: { _ in
                if isThrown { throw Refused() }
                return after(.seconds(1)).done { throw Refused() }
            }
            try hang(b.write("a line\n"), timeout: patience)
            #expect(throws: Refused()) { try hang(all, timeout: patience) }
        }
    }

    @Test(.network(.virtual)) func cancellingTheResultCancelsWhatItFollows() throws {
        let (a, b) = try Connection.pair()
        var isCancelled = false
        let (never, resolver) = Promise<Void>.pending()
        resolver.onCancel { isCancelled = true }
        let (begun, begin) = Promise<Void>.pending()
        let all = a.forEachFrame(LineDecoder(limit: 4)) { _, _ in
            Promise<Void>.value
        } recover: { _ in
            begin.fulfill()
            return never
        }
        try hang(when(fulfilled: b.write("a line\n"), begun), timeout: patience)
        all.cancel()
        #expect(throws: PromiseError.cancelled) { try hang(all, timeout: patience) }
        hang(after(.zero))
        expect(isCancelled)
    }

    /// It receives what has already arrived, whose first call comes in a separate job, and its wait is no part of the
    /// message whose answer has failed.
    @Test(.network(.virtual), arguments: [[], [1, 7]] as [[UInt8]]) func anotherLoopGoesOn(buffered: [UInt8]) throws {
        let (a, b) = try Connection.pair()
        a.frameTimeouts = FrameTimeouts(message: .seconds(1))
        var payloads: [[UInt8]] = []
        var isInClosure = false
        let all = a.forEachFrame(LineDecoder(limit: 64)) { _, _ -> Promise<Void> in
            throw Refused()
        } recover: { _ in
            isInClosure = true
            defer { isInClosure = false }
            return a.forEachFrame(LengthPrefixDecoder<UInt8>()) { payload, _ in
                expect(!isInClosure)
                payloads.append(payload)
            }
        }
        try hang(b.write(Array("upgrade\n".utf8) + buffered), timeout: patience)
        let rest = after(.seconds(2)).then { b.write([2, 8, 9]) }.then { b.shutdownWrite() }
        try hang(when(fulfilled: rest, all), timeout: patience)
        expectEqual(payloads, buffered.isEmpty ? [[8, 9]] : [[7], [8, 9]])
    }

    /// As in a `recover` after the loop, whose promise the cancellation withdraws.
    @Test(.network, arguments: [false, true], [false, true])
    func aCancelledLoopRecoversNothing(isThrown: Bool, isReturned: Bool) throws {
        let (a, b) = try Connection.pair()
        var all = Promise<Void>.value
        var recoveries = 0
        let loop = {
            a.forEachFrame(LineDecoder(limit: 64)) { _, _ -> Promise<Void> in
                all.cancel()
                if isThrown { throw Refused() }
                return Promise(error: Refused())
            } recover: { _ in
                recoveries += 1
                return .value
            }
        }
        all = isReturned ? Promise.value.then { loop() } : loop()
        try hang(b.write("a line\n"), timeout: patience)
        #expect(throws: PromiseError.cancelled) { try hang(all, timeout: patience) }
        hang(after(.zero))
        expectEqual(recoveries, 0)
    }

    @Test(.network) func theClosureMayCloseTheConnectionAndReturnTheResultItself() throws {
        let (a, b) = try Connection.pair()
        var all = Promise<Void>.value
        all = a.forEachFrame(LineDecoder(limit: 4)) { _, _ in
            Promise<Void>.value
        } recover: { _ in
            a.close()
            return all
        }
        try hang(b.write("a line\n"), timeout: patience)
        #expect(throws: PromiseError.returnedSelf) { try hang(all, timeout: patience) }
    }
}
