@testable import PromisesTestSupport

/// A guarantee has no error to report that its job did not run, so this is logged.
struct GuaranteesOnTests {
    @Test(arguments: [false, true]) func thenThatIsNotRunIsLogged(isReleased: Bool) throws {
        let lines = try loggedInLoop { loop throws in
            let next: Guarantee<Int> = Guarantee.value(1).then(on: dispatcher(isReleased)) { .value($0) }
            next.done { _ in Issue.record("it has run") }
            try loop.run()
        }
        expectEqual(lines.count, 1)
    }

    @Test(arguments: [false, true]) func recoverThatIsNotRunIsLogged(isReleased: Bool) throws {
        let lines = try loggedInLoop { loop throws in
            let next: Guarantee<Int> = Promise<Int>(error: Flaw(1)).recover(on: dispatcher(isReleased)) { _ in
                .value(2)
            }
            next.done { _ in Issue.record("it has run") }
            try loop.run()
        }
        expectEqual(lines.count, 1)
    }

    private func dispatcher(_ releases: Bool) -> any Dispatcher { releases ? Shredder() : Refuser() }

    @Test func aCancelledOneIsNotReported() throws {
        let lines = try loggedInLoop { loop throws in
            let next: Guarantee<Int> = after(.seconds(1)).then(on: Shelf()) { .value(1) }
            next.cancel()
            try loop.run()
        }
        expect(lines.isEmpty)
    }
}
