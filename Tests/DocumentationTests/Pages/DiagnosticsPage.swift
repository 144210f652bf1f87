// Made by .ci/snippets.py from docs/guides/diagnostics.md; do not edit.
// swift-format-ignore-file
import Promises
import Reactor

// docs/guides/diagnostics.md: Log rate limits
extension Snippets {
    static func diagnostics1() throws {
        conf.logLimit = (burst: 100, period: .seconds(60))
        conf.logLimit = nil                                    // all: in a test that counts
    }
}

// docs/guides/diagnostics.md: To your own logger
extension Snippets {
    static func diagnostics2() throws {
        conf.logHandler = { event in
            switch event {
            case .unhandledRejection(let error, let promise):
                logger.error("\(error)", metadata: ["promise": "\(promise)"])
            case .abandoned(let promise):
                logger.error("abandoned: \(promise)")
            default:
                logger.warning("\(event)")
            }
        }
    }
}

// docs/guides/diagnostics.md: Names
extension Snippets {
    static func diagnostics3() throws {
        let login = request("/login").map(Session.init).named("login")
        _ = login
    }
}

// docs/guides/diagnostics.md: Traces
extension Snippets {
    static func diagnostics4() throws {
        conf.trace = true
    }
}

// docs/guides/diagnostics.md: What is pending
extension Snippets {
    static func diagnostics5() throws {
        for promise in EventLoop.pendingPromises { print(promise) }
    }
}

// docs/guides/diagnostics.md: Slow handlers
extension Snippets {
    static func diagnostics6() throws {
        EventLoop.current.slowHandlerThreshold = .milliseconds(20)
    }
}

// docs/guides/diagnostics.md: Why `run()` does not return
extension Snippets {
    static func diagnostics7() throws {
        print(EventLoop.current.keepAliveReasons)
    }
}
