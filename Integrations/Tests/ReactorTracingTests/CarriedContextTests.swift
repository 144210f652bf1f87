import Promises
import Reactor
import ReactorTracing
import ServiceContextModule
import Testing

private enum RequestID: ServiceContextKey { typealias Value = Int }

private var current: Int? { ServiceContext.current?[RequestID.self] }

private func withRequest<Result>(_ number: Int, _ body: () throws -> Result) rethrows -> Result {
    var context = ServiceContext.topLevel
    context[RequestID.self] = number
    return try ServiceContext.$current.withValue(context, operation: body)
}

/// The context of a request in handlers.
@Suite struct CarriedContextTests {
    @Test func handlersHaveTheContextOfTheirAttachment() throws {
        try EventLoop.withLoop { _ throws in
            let (with, without) = withRequest(7) {
                let context = CarriedContext()
                return (
                    after(.milliseconds(1)).map { context { current } }, after(.milliseconds(1)).map { current }
                )
            }
            #expect(hang(with) == 7)
            #expect(hang(without) == nil, "only where it is asked for")
            #expect(current == nil)
        }
    }

    @Test func handlersOnOtherThreadsHaveItToo() throws {
        try EventLoop.withLoop { _ throws in
            let number = withRequest(8) {
                let context = CarriedContext()
                return Promise.value(1).map(on: ThreadPool.shared) { number in context { number + (current ?? 0) } }
            }
            #expect(try hang(number) == 9)
        }
    }

    @Test func requestsDoNotMix() throws {
        try EventLoop.withLoop { _ throws in
            let numbers = (0..<20).map { number in
                withRequest(number) {
                    let context = CarriedContext()
                    return after(.microseconds(number % 3)).map {
                        context {
                            let inner = withRequest(-1) { CarriedContext() }
                            return [inner { current }, current]
                        }
                    }
                }
            }
            #expect(hang(when(guarantees: numbers)) == (0..<20).map { [-1, $0] })
        }
    }

    @Test func noContextIsCarriedToo() {
        let none = CarriedContext()
        #expect(none.context == nil && withRequest(3) { none { current } } == nil)
    }

    @Test func awaitingKeepsTheContextOfTheTask() async throws {
        let remote = try EventLoop.spawn(name: "work")
        var context = ServiceContext.topLevel
        context[RequestID.self] = 5
        await ServiceContext.$current.withValue(context) {
            let answer = await Guarantee(on: remote) { 1 }.value
            #expect(answer == 1 && current == 5)
        }
        remote.stop()
    }
}
