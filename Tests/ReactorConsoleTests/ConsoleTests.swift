/// The console asks each loop of the process, and switches tracing on. Other tests count the jobs of their loops, so each
/// of these has a process of its own.
@Suite(.serialized)
struct ConsoleTests {
    @Test(.ownThread) func answers() async {
        await #expect(processExitsWith: .success) { try Bodies.answers() }
    }

    @Test(.ownThread) func refuses() async {
        await #expect(processExitsWith: .success) { try Bodies.refuses() }
    }

    @Test(.ownThread) func requiresItsToken() async {
        await #expect(processExitsWith: .success) { try Bodies.requiresItsToken() }
    }

    @Test(.ownThread) func startsOnlyWhereItIsSafe() async {
        await #expect(processExitsWith: .success) { try Bodies.startsOnlyWhereItIsSafe() }
    }

    @Test(.ownThread) func showsNoValuesAndNoMarkup() async {
        await #expect(processExitsWith: .success) { try Bodies.showsNoValuesAndNoMarkup() }
    }

    @Test(.ownThread) func showsAStuckLoop() async {
        await #expect(processExitsWith: .success) { try Bodies.showsAStuckLoop() }
    }

    @Test(.ownThread) func showsConnections() async {
        await #expect(processExitsWith: .success) { try Bodies.showsConnections() }
    }

    @Test(.ownThread) func showsPromisesAsTrees() async {
        await #expect(processExitsWith: .success) { try Bodies.showsPromisesAsTrees() }
    }

    @Test(.ownThread) func marksLostPromises() async {
        await #expect(processExitsWith: .success) { try Bodies.marksLostPromises() }
    }

    @Test(.ownThread) func showsPoolsLimitersAndEvents() async {
        await #expect(processExitsWith: .success) { try Bodies.showsPoolsLimitersAndEvents() }
    }

    @Test(.ownThread) func showsALateLoop() async {
        await #expect(processExitsWith: .success) { try Bodies.showsALateLoop() }
    }

    @Test(.ownThread) func records() async {
        await #expect(processExitsWith: .success) { try Bodies.records() }
    }

    @Test(.ownThread) func reportsNothingOfItsOwn() async {
        await #expect(processExitsWith: .success) { try Bodies.reportsNothingOfItsOwn() }
    }

    @Test(.ownThread) func outlivesItsVisitors() async {
        await #expect(processExitsWith: .success) { try Bodies.outlivesItsVisitors() }
    }
}

enum Bodies {}
