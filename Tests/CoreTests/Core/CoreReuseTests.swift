@testable import Promises
@testable import PromisesTestSupport

/// A loop keeps the cores of steps that have run, and reuses them for further promises. This must not affect a promise
/// that the program still holds, or an object that a promise has held.
struct CoreReuseTests {
    private let loop = EventLoop.current

    /// True if links are reused. Without optimisation, the caller that runs a step also has a reference to it.
    private static var keepsLinks: Bool {
        #if DEBUG
        false
        #else
        !isSanitized
        #endif
    }

    private func address<T>(_ promise: Promise<T>) -> UnsafeMutableRawPointer {
        Unmanaged.passUnretained(promise.core).toOpaque()
    }

    /// Two steps after `promise`; the caller holds only the last one.
    private func twoSteps(after promise: Promise<Int>) -> (first: UnsafeMutableRawPointer, last: Promise<Int>) {
        let first = promise.map { $0 + 1 }
        return (address(first), first.map { $0 + 1 })
    }

    @Test(.inLoop, .disabled(if: isSanitized)) func aStepThatHasRunIsUsedAgain() throws {
        let (promise, resolver) = Promise<Int>.pending()
        let (first, last) = twoSteps(after: promise)
        resolver.fulfill(1)
        try loop.run()
        expectEqual(last.settledValue, 3)
        let next = promise.map { $0 * 10 }
        expectEqual(address(next), first)
        expect(next.isPending)
        try loop.run()
        expectEqual(next.settledValue, 10)
    }

    /// The number of cores that the loop keeps.
    private func keptCores(_ loop: EventLoop) -> Int {
        var kept: [Unmanaged<_Job>] = []
        while let job = loop.takeSpare() { kept.append(job) }
        for job in kept where !loop.keepSpare(job) { job.release() }
        return kept.count
    }

    /// The promise that a handler returns has settled: its value moves on, and its core is kept for the next promise.
    @Test(.inLoop, .enabled(if: Self.keepsLinks)) func aPromiseThatAHandlerReturnedIsKept() throws {
        let source = Promise.value(1)
        let all = (0..<10).map { number in source.then { _ in Promise.value([number]) } }
        expectEqual(keptCores(loop), 0)
        try loop.run()
        expectEqual(all.map(\.settledValue), (0..<10).map { [$0] })
        // Each handler has reused the core of the previous one.
        expectEqual(keptCores(loop), 1)
    }

    /// The last promise of a recursion settles the first one in its place, and is kept like those in between.
    @Test(.inLoop, .enabled(if: Self.keepsLinks)) func theLastLinkOfARecursionIsKept() throws {
        let settled = Promise.value([7])
        func descend(_ left: Int) -> Promise<[Int]> {
            settled.then { _ in left == 0 ? settled : descend(left - 1) }
        }
        let all = descend(3)
        try loop.run()
        expectEqual(all.settledValue, [7])
        expectEqual(keptCores(loop), 2)
    }

    @Test(.inLoop) func aStepWithAWeakReferenceIsNot() throws {
        let (promise, resolver) = Promise<Int>.pending()
        weak var weakFirst: PromiseCore?
        func attach() -> Promise<Int> {
            let first = promise.map { $0 + 1 }
            weakFirst = first.core
            return first.map { $0 + 1 }
        }
        let last = attach()
        expect(weakFirst != nil)
        resolver.fulfill(1)
        try loop.run()
        expectEqual(last.settledValue, 3)
        let next = promise.map { $0 }
        expect(weakFirst == nil && next.isPending)
    }

    @Test(.inLoop) func aWeakReferenceMakesASideTable() {
        let core = PromiseCore(handedOut: Int.self)
        expect(!core.hasSideTable)
        weak let other: PromiseCore? = core
        expect(other === core && core.hasSideTable)
    }

    // MARK: The memory of a core

    /// The bytes of the fields after the payload: `sourceWord`, and two words.
    private static let fields = CorePayload.offset + 24..<CorePayload.offset + 40

    private func byte(_ core: PromiseCore, _ offset: Int) -> UInt8 {
        Unmanaged.passUnretained(core).toOpaque().load(fromByteOffset: offset, as: UInt8.self)
    }

    /// The bits of each field that are annotations; a core with annotations is not kept.
    private func annotationBits() -> [UInt8] {
        let core = PromiseCore(state: .fulfilled(isTrivial: true), loop: nil, code: .none)
        core.annotate([.isRecorded, .isNoted, .isDetached])
        defer { core.reset(.fulfilled(isTrivial: true), nil, .none) }
        return Self.fields.map { byte(core, $0) }
    }

    /// Sets all bits of the fields of the core at this address except the annotations.
    private func fill(_ core: UnsafeMutableRawPointer) {
        for (offset, annotations) in zip(Self.fields, annotationBits()) {
            core.storeBytes(of: ~annotations, toByteOffset: offset, as: UInt8.self)
        }
    }

    /// A field that `reuse` forgets keeps the value of the previous promise.
    @Test(.inLoop, .disabled(if: isSanitized)) func noFieldIsLeftAsItWas() throws {
        expectEqual(annotationBits().map(\.nonzeroBitCount).reduce(0, +), 3)
        let (promise, resolver) = Promise<Int>.pending()
        let (first, last) = twoSteps(after: promise)
        resolver.fulfill(1)
        try loop.run()
        fill(first)
        let used = PromiseCore.pending(.none)
        expectEqual(Unmanaged.passUnretained(used).toOpaque(), first)
        let new = PromiseCore(state: .pending, loop: LoopRef.ofThisThread, code: .none)
        let differing = Self.fields.filter { byte(used, $0) != byte(new, $0) }
        expect(used.loop == new.loop && used.next == nil && used.code.bits == new.code.bits)
        expect(differing.isEmpty, "the bytes at \(differing)")
        // As if they had run, so that nothing is dropped.
        for core in [used, new] { core.state.store(.fulfilled(isTrivial: true)) }
        expectEqual(last.settledValue, 3)
    }

    @Test(.inLoop) func aLoopKeepsNoMoreThanItsBound() throws {
        let (promise, resolver) = Promise<Int>.pending()
        let last = (0..<1000).reduce(promise) { promise, _ in promise.map { $0 + 1 } }
        resolver.fulfill(0)
        try loop.run()
        expectEqual(last.settledValue, 1000)
        var kept = 0
        while let core = loop.takeSpare() {
            kept += 1
            core.release()
        }
        expectEqual(kept, (isSanitized ? 0 : 128))
    }

    // MARK: Contents

    /// The value's deinit runs just before its core is kept.
    @Test(.inLoop) func aValueMayMakePromisesInItsDeinit() throws {
        var sum = 0
        var last = Promise<Int>.value(0)
        for number in 0..<100 {
            let maker = Promise.value(LastWords { last = last.map { $0 + number } })
            // An operator that copies the value, so that the core still has one when it is released.
            maker.get { _ in sum += 1 }.cauterize()
        }
        try loop.run()
        expect(sum == 100 && last.settledValue == 4950)
    }
}
