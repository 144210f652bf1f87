@testable import Promises
@testable import PromisesTestSupport
@testable import ReactorIO
@testable import ReactorIOTestSupport

private struct Pairs: FrameDecoder {
    func decode(_ bytes: RawSpan) throws -> DecodedFrame<Void> {
        bytes.byteCount < 2 ? .incomplete(missing: 2 - bytes.byteCount) : .frame((), consumed: 2)
    }
}

/// However a loop of reads ends: its promise settles, nothing retains the body or the promise afterwards, and the
/// connection can be read again.
struct ReadEndTests {
    private struct Refused: Error {}

    private final class Box { var promise: Promise<Void>? }

    enum Form: CaseIterable { case chunks, frames, filteredChunks, filteredFrames, recoveringFrames }

    enum Way: CaseIterable {
        case cancels, cancelsAndWaits, cancelsAndThrows, closes, aborts, abortsAndThrows, stops, fails, returnsItself
        case isCancelledInATurn, isAbortedInATurn, isResetInATurn, readsItself
        case waitsAndIsCancelled, waitsAndIsAborted, waitsAndIsReset, waitsForAFailure
        case waitsForPeersEnd
    }

    /// - Parameter count: the number of bytes that the peer sends together.
    @Test(arguments: Form.allCases, Way.allCases)
    func nothingIsLeft(form: Form, way: Way) throws {
        for count in [2, 3, 6] {
            try withNetwork(clock: VirtualClock()) { net in
                let tally = Tally()
                let isFiltered = form == .filteredChunks || form == .filteredFrames
                let (connection, peer) = try isFiltered ? net.filteredPair() : net.pair()
                let result = Box()
                let all = start(form, way, connection, peer, result, tally.token())
                result.promise = all
                let bytes = Array("abcdef".utf8.prefix(count))
                try peer.send(isFiltered ? RecordFilter.data(bytes) : bytes)
                if way == .waitsForPeersEnd { peer.end() }
                let later = after(.milliseconds(10)).done {
                    switch way {
                    case .waitsAndIsCancelled: all.cancel()
                    case .waitsAndIsAborted: connection.abort()
                    case .waitsAndIsReset: peer.reset()
                    case .readsItself: peer.end()
                    default: break
                    }
                }
                hang(later)
                _ = try? hang(all, timeout: patience)
                result.promise = nil
                let place = "\(form), \(way), \(count) bytes"
                expect(!all.isPending, place)
                expectEqual(tally.alive, 0, place)
                expectEqual(all.core.ref.referenceCount, 1, place)
                let next = connection.read()
                if case .failed(let error) = next.settledValue { expect(error.code != EBUSY, place) }
                connection.abort()
                expect(!next.asPromise().isPending)
            }
        }
    }

    private func start(
        _ form: Form, _ way: Way, _ connection: Connection, _ peer: Peer, _ result: Box, _ token: Tally.Token
    ) -> Promise<Void> {
        func body() throws -> Promise<Void> {
            token.use()
            func inATurn(_ action: @escaping () -> Void) {
                after(.milliseconds(1)).done(action)
                hang(after(.milliseconds(2)))
            }
            let result = result.promise
            switch way {
            case .cancels: result?.cancel()
            case .cancelsAndWaits:
                result?.cancel()
                return after(.seconds(1)).asPromise().asVoid()
            case .cancelsAndThrows:
                result?.cancel()
                throw Refused()
            case .closes: connection.close(linger: .zero)
            case .aborts: connection.abort()
            case .abortsAndThrows:
                connection.abort()
                throw Refused()
            case .stops: throw StopReading()
            case .fails: throw Refused()
            case .returnsItself: return result ?? .value
            case .isCancelledInATurn: inATurn { result?.cancel() }
            case .isAbortedInATurn: inATurn { connection.abort() }
            case .isResetInATurn: inATurn { peer.reset() }
            case .readsItself: return connection.read(exactly: 1000).asVoid()
            case .waitsAndIsCancelled, .waitsAndIsAborted, .waitsAndIsReset:
                return after(.seconds(1)).asPromise().asVoid()
            case .waitsForAFailure: return after(.milliseconds(1)).done { throw Refused() }
            case .waitsForPeersEnd: return after(.milliseconds(1)).asPromise().asVoid()
            }
            return .value
        }
        switch form {
        case .chunks, .filteredChunks: return connection.forEachChunk { _ in try body() }
        case .frames, .filteredFrames: return connection.forEachFrame(Pairs()) { _, _ in try body() }
        case .recoveringFrames:
            return connection.forEachFrame(Pairs()) { _, _ in
                try body()
            } recover: { _ in
                token.use()
                throw Refused()
            }
        }
    }

    enum Call: CaseIterable { case decode, heldBytes }

    /// Meddles once, in one of its calls.
    private final class Meddling: FrameDecoder {
        private let place: Call
        var meddle: (() -> Void)?

        init(_ place: Call) { self.place = place }

        func decode(_ bytes: RawSpan) throws -> DecodedFrame<Void> {
            if place == .decode { meddle.take()?() }
            return bytes.byteCount < 3 ? .incomplete(missing: 3 - bytes.byteCount) : .frame((), consumed: 3)
        }

        var heldBytes: Int {
            if place == .heldBytes { meddle.take()?() }
            return 0
        }
    }

    enum Use: CaseIterable { case read, loop, loopThatAnswers }
    enum Meddle: CaseIterable { case cancels, reads, cancelsAndReads, aborts }

    @Test(.network(.virtual), arguments: Use.allCases, Meddle.allCases)
    func aDecoderMeddlesWhenItIsCalled(use: Use, _ meddle: Meddle) throws {
        for place in Call.allCases {
            let (connection, peer) = try net.pair()
            let decoder = Meddling(place)
            let all =
                use == .read
                ? connection.readFrame(decoder).asVoid()
                : connection.forEachFrame(decoder) { _, _ in after(.milliseconds(10)) }
            var other: Promise<[UInt8]>?
            decoder.meddle = {
                if meddle == .cancels || meddle == .cancelsAndReads { all.cancel() }
                if meddle == .reads || meddle == .cancelsAndReads { other = connection.read(exactly: 2) }
                if meddle == .aborts { connection.abort() }
            }
            // Half a frame, whose rest is waited for; or a frame, whose answer may be.
            let isWhole = place == .decode || use == .loopThatAnswers
            try peer.send(isWhole ? "abc" : "a")
            _ = try? hang(all, timeout: .seconds(1))
            expect(!all.isPending, "\(place)")
            if let other {
                try peer.send(isWhole ? "de" : "b")
                expectEqual(try hang(other, timeout: patience), Array((isWhole ? "de" : "ab").utf8), "\(place)")
            }
            connection.abort()
        }
    }
}
