import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

/// `LoopGroup.ended` in an async function, whose thread drives no loop.
@Suite(.ownThread) struct AwaitingEndedGroupsTests {
    @Test func anAsyncFunctionSeesTheEndOfAGroup() throws {
        try EventLoop.withLoop { _ throws in
            let group = try LoopGroup(loops: 2)
            let (seen, resolver) = Promise<Bool>.pending()
            Task.detached {
                let ended = group.ended
                group.stop()
                await ended.value
                resolver.fulfill(group.allSatisfy(\.hasEnded))
            }
            expect(seen, gives: true)
        }
    }

    @Test func anAsyncFunctionSeesAGroupThatHasEnded() throws {
        try EventLoop.withLoop { loop throws in
            let group = try LoopGroup(loops: 3)
            group.stop()
            group.join()
            expect(Promise { () async throws -> Bool in await group.ended.value == () }, gives: true)
            hang(group.ended)
            // The task may be about to end.
            try loop.run()
            expect(!loop.canWakeItself)
        }
    }
}
