import Glibc
import TestSupport
import Testing

@testable import Promises

/// The reaction to each failure of accept4(2).
@Suite struct AcceptPauseTests {
    @Test(arguments: [EMFILE, ENFILE, ENOBUFS, ENOMEM]) func anEpisodeOfShortageIsNewOnce(code: CInt) {
        var pause = AcceptPause()
        var refusals = 0
        expectEqual(pause.reaction(to: code, &refusals), .pause(isNew: true))
        expectEqual(pause.reaction(to: code, &refusals), .pause(isNew: false))
        pause.hasShortage = false
        expectEqual(pause.reaction(to: code, &refusals), .pause(isNew: true))
    }

    @Test func manyFailedConnectionsInARowPause() {
        var pause = AcceptPause()
        var refusals = 0
        for _ in 1..<AcceptPause.refusalLimit { expectEqual(pause.reaction(to: ECONNABORTED, &refusals), .acceptNext) }
        expectEqual(pause.reaction(to: ECONNABORTED, &refusals), .pause(isNew: true))
        expectEqual(pause.reaction(to: EPERM, &refusals), .pause(isNew: false))
        expect(pause.reaction(to: EAGAIN, &refusals) == .wait && refusals == 0)
        expectEqual(pause.reaction(to: EPERM, &refusals), .acceptNext)
    }

    @Test(arguments: [EBADF, EINVAL, ENOTSOCK, EOPNOTSUPP]) func aSocketThatDoesNotWorkEndsIt(code: CInt) {
        var pause = AcceptPause()
        var refusals = 0
        expectEqual(pause.reaction(to: code, &refusals), .end)
    }
}
