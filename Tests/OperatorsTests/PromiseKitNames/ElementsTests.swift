@testable import PromisesTestSupport

/// The operators on elements.
struct ElementsTests {
    private let loop = EventLoop.current
    private let pool = ThreadPool.shared

    @Test(.inLoop) func ofPromises() {
        let promise = Promise.value([3, 1, 2])
        expect(promise.mapValues { $0 * 2 }, gives: [6, 2, 4])
        expect(promise.flatMapValues { [$0, $0] }, gives: [3, 3, 1, 1, 2, 2])
        expect(promise.compactMapValues { $0 > 1 ? "\($0)" : nil }, gives: ["3", "2"])
        expect(promise.filterValues { $0 != 1 }, gives: [3, 2])
        expect(promise.sortedValues(), gives: [1, 2, 3])
        expect(promise.firstValue, gives: 3)
        expect(promise.firstValue { $0 < 3 }, gives: 1)
        expect(promise.lastValue, gives: 2)
        expect(promise.thenFlatMap { Promise.value([$0, 0]) }, gives: [3, 0, 1, 0, 2, 0])
        expect(promise.firstValue { $0 > 3 }, failsWith: PromiseError.emptySequence)
        expect(Promise.value([Int]()).lastValue, failsWith: PromiseError.emptySequence)
    }

    @Test(.inLoop) func ofGuarantees() {
        let guarantee = Guarantee.value([3, 1, 2])
        expect(guarantee.mapValues { $0 * 2 }.flatMapValues { [$0, 1] }, gives: [6, 1, 2, 1, 4, 1])
        expect(guarantee.compactMapValues { $0 > 1 ? $0 : nil }.filterValues { $0 != 3 }, gives: [2])
        expect(guarantee.sortedValues(), gives: [1, 2, 3])
        expect(guarantee.sortedValues { $0 > $1 }, gives: [3, 2, 1])
        expect(guarantee.firstValue, gives: 3)
        expect(guarantee.lastValue, gives: 2)
        let mapped: Guarantee<[Int]> = guarantee.thenMap { .value($0 + 1) }
        let flat: Guarantee<[Int]> = guarantee.thenFlatMap { .value([$0]) }
        expect(mapped, gives: [4, 2, 3])
        expect(flat, gives: [3, 1, 2])
    }

    @Test(.inLoop) func elsewhere() {
        let promise = Promise.value([3, 1, 2])
        expect(promise.mapValues(on: pool) { $0 * 2 }, gives: [6, 2, 4])
        expect(promise.flatMapValues(on: pool) { [$0, $0] }, gives: [3, 3, 1, 1, 2, 2])
        expect(promise.compactMapValues(on: pool) { $0 > 1 ? "\($0)" : nil }, gives: ["3", "2"])
        expect(promise.filterValues(on: pool) { $0 != 1 }, gives: [3, 2])
        expect(promise.sortedValues(on: pool), gives: [1, 2, 3])
        expect(promise.firstValue(on: pool) { $0 < 3 }, gives: 1)
    }

    @Test(.inLoop) func errorsReject() {
        let promise = Promise.value([3, 1, 2])
        expect(promise.mapValues(on: pool) { throw Flaw($0) } as Promise<[Int]>, failsWith: Flaw(3))
        expect(promise.filterValues(on: pool) { throw Flaw($0) }, failsWith: Flaw(3))
        expect(promise.firstValue(on: pool) { $0 > 3 }, failsWith: PromiseError.emptySequence)
        expect(promise.mapValues(on: Refuser()) { $0 }, failsWith: Flaw(503))
    }

    @Test(.inLoop) func theDispatcherRunsTheClosure() {
        let shelf = Shelf()
        let mapped = Guarantee.value([1, 2]).mapValues(on: shelf) { $0 + 1 }
        expect(mapped.isPending && shelf.count == 1, "one job for all elements")
        shelf.run()
        expectEqual(mapped.settledValue, [2, 3])
    }

    @Test(.inLoop) func thenMapCollectsInTheOrderOfTheElements() {
        let remote = loop.remote
        let delayed = Promise.value([3, 1, 2]).thenMap(on: remote) { number in
            after(.seconds(number)).map { number * 10 }
        }
        expect(delayed, gives: [30, 10, 20])
        expectEqual(loop.now.nanoseconds, 3_000_000_000, "the promises wait side by side")
        expect(Promise.value([1, 2]).thenMap(on: pool) { .value("\($0)") }, gives: ["1", "2"])
        expect(Promise.value([Int]()).thenMap(on: pool) { Promise.value($0) }, gives: [])
    }

    @Test(.inLoop) func theFirstRejectionOfThenMapCounts() {
        let numbers = Promise.value([1, 2, 3])
        let calls = Shared<[Int]>([])
        let thrown = numbers.thenMap(on: pool) { number -> Promise<Int> in
            calls.change { $0.append(number) }
            guard number < 2 else { throw Flaw(number) }
            return .value(number)
        }
        expect(thrown, failsWith: Flaw(2))
        expectEqual(calls.value, [1, 2])
        expect(numbers.thenMap(on: Refuser()) { Promise.value($0) }, failsWith: Flaw(503))
    }
}
