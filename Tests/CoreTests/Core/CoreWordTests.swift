import TestSupport
import Testing

@testable import Promises
@testable import Reactor

/// The words of a core and their transitions. The other tests have their use by threads.
struct CoreWordTests {
    private let waiter: UInt = 0x7F00_0000_1230

    @Test func aLockedListIsNotTaken() {
        let locked = StateWord.pending.pushing(waiterAt: waiter).locked
        expect(locked.isLocked && locked.isClaimable && locked.takesWaiters && !locked.hasListToTake)
        // A claim comes while it is locked, and stays.
        let unlocked = locked.claimed.unlocked(withWaiterAt: 0)
        expectEqual(unlocked, StateWord.pending.claimed)
    }

    // MARK: What is left beside the addresses

    private func coreOfGenericCode<Value>(_ value: Value) -> PromiseCore {
        PromiseCore(state: .pending, loop: nil, role: .shielding, code: .ofGeneric(Follow<Value>.self))
    }

    @Test func theCodeOfACoreKeepsItsRole() {
        let code = CoreCode { core, _ in core.payload.store(7) }
        for role in [CoreRole(rawValue: 0), .inlineAtHome, CoreRole(rawValue: 1 << 15 - 1)] {
            let core = PromiseCore(state: .fulfilled(isTrivial: true), loop: nil, role: role, code: code)
            expect(core.role == role && core.code.with([]).bits == code.bits)
            core.code(core, .run)
            expectEqual(core.payload.value(as: Int.self), 7)
        }
    }

    @Test func genericCodeThatIsNotSpecialisedKnowsTheType() {
        let tally = Tally()
        let core = coreOfGenericCode([tally.token()])
        expectEqual(core.role, .shielding)
        expectEqual(core.code.with([]).bits, CoreCode.ofGeneric(Follow<[Tally.Token]>.self).bits)
        core.payload.store([tally.token()])
        expectEqual(tally.alive, 1)
        core.code(core, .destroy)
        expectEqual(tally.alive, 0)
        core.state.store(.fulfilled(isTrivial: true))
    }

    /// As on a heap whose addresses are tagged.
    @Test(.ownThread) func metadataAtATaggedAddressEndsTheProcessWithAReason() async {
        let ended = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            _ = CoreCode(generic: unsafeBitCast(1 << 56 | 4096 as UInt, to: GenericCode.Type.self))
        }
        let text = String(decoding: ended?.standardErrorContent ?? [], as: UTF8.self)
        expect(text.contains("promises need a heap without tags"), text)
    }

    @Test func marksAndANumberAreInOneWord() {
        let all = CoreMarks([.hasNextStep, .willBeRejected, .countsAsWaiting, .hasHadNextStep])
        let word = PromiseCore(handedOut: Void.self)
        expect(word.marks == [] && word.crossThreadNumber == 0)
        word.crossThreadNumber = UInt32(CrossThreadWaiters.largestNumber)
        expect(word.marks == [] && word.crossThreadNumber == CrossThreadWaiters.largestNumber)
        word.marks = all
        expect(word.marks == all && word.crossThreadNumber == CrossThreadWaiters.largestNumber)
        word.crossThreadNumber = 0
        word.marks.remove(.willBeRejected)
        expect(word.marks == all.subtracting(.willBeRejected) && word.crossThreadNumber == 0)
    }

    /// A list is swept when tombstones outnumber the others; the count shares a word with the annotations.
    @Test func withdrawalsAreCountedUntilTheListIsSwept() {
        let all = CoreAnnotations([.isRecorded, .isNoted, .isDetached])
        let word = SharedWord()
        word.annotate(all)
        for (few, nodesLeft) in [(16, 100), (100, 1), (16, .max)] {
            for _ in 1..<few { expect(word.countWithdrawal() < 0) }
            expectEqual(word.countWithdrawal(), 0)
            expectEqual(word.countWithdrawal(), 1)
            word.restartCount(nodesLeft: nodesLeft)
        }
        expect(word.annotations == all && word.countWithdrawal() < 0)
        word.clear()
        expect(word.annotations.isEmpty)
    }
}

/// A field at an offset that the core's code does not expect is reported by name. `LayoutGuardTests` adds one.
struct CoreLayoutTests {
    private let core = PromiseCore(state: .pending, loop: nil, code: .none)

    @Test func theFieldsAreWhereTheCodeExpectsThem() {
        expectEqual(core.layoutFault(), nil)
        // Restored, so that nothing is dropped.
        expect(core.hasPayload(at: core.payload.address.assumingMemoryBound(to: UInt.self)))
    }

    @Test func whatAReadHasFoundNeedsNoBlock() { expect(CorePayload.isInline(ReadOutcome.self)) }

    @Test(arguments: [-8, 8]) func aPayloadThatIsElsewhereIsNamed(by distance: Int) throws {
        let offset = CorePayload.offset + distance
        let fault = try #require(core.layoutFault(payloadOffset: offset))
        expect(fault.hasPrefix("PromiseCore.payload does not begin at byte \(offset)"))
    }
}
