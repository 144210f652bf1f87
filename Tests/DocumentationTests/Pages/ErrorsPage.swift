// Made by .ci/snippets.py from docs/guides/errors.md; do not edit.
// swift-format-ignore-file
import Promises
import Reactor

// docs/guides/errors.md: Errors
extension Snippets {
    static func errors1() throws {
        enum Weather: Error, Equatable { case rain, hail(Int) }
        func forecast(_ error: Weather) -> Promise<String> { Promise(error: error) }
        var log: [String] = []

        forecast(.rain)
            .done { log.append($0) }                  // passed by
            .catch { log.append("caught \($0)") }
            .finally { log.append("finally") }

        forecast(.hail(3))
            .catch(only: Weather.rain) { log.append("umbrella") }
            .catch(only: Weather.self) { log.append("stay at \($0)") }
            .catch { log.append("not weather: \($0)") }
            .finally { log.append("the end") }

        forecast(.rain)
            .tapError { _ in log.append("tapError") }
            .mapError { _ in Weather.hail(1) }
            .catch { log.append("now \($0)") }
        try EventLoop.current.run()
        assert(log == ["tapError", "caught rain", "stay at hail(3)", "finally", "now hail(1)", "the end"])
        _ = log
    }
}

// docs/guides/errors.md: Errors
extension Snippets {
    static func errors2() throws {
        enum Weather: Error, Equatable { case rain, hail(Int) }
        func forecast(_ error: Weather) -> Promise<String> { Promise(error: error) }

        let promised = forecast(.rain).recover { _ in after(.seconds(1)).map { "dry later" } }
        let certain: Guarantee<String> = forecast(.rain).recover { _ in .value("dry indoors") }
        let ofOneKind = forecast(.hail(2)).recover(only: Weather.self) { Promise.value("\($0)") }
        let ofOneValue = forecast(.rain).recover(only: Weather.rain) { Promise.value("umbrella") }
        let all = try hang(when(fulfilled: promised, certain, ofOneKind, ofOneValue))
        assert(all == ("dry later", "dry indoors", "hail(2)", "umbrella"))

        let handled: Guarantee<Void> = forecast(.rain).asVoid().recover { _ in .value }
        hang(handled)
        _ = promised
        _ = certain
        _ = ofOneKind
        _ = ofOneValue
        _ = all
        _ = handled
    }
}

// docs/guides/errors.md: Errors
extension Snippets {
    static func errors3() throws {
        var seen: [String] = []
        let cancelled = Promise<Int>(error: PromiseError.cancelled)
        cancelled.catch { _ in seen.append("not called") }.finally { seen.append("finally") }
        cancelled.catch(policy: .allErrors) { error in seen.append("cancelled: \(error.isCancelled)") }
        try EventLoop.current.run()
        assert(seen == ["cancelled: true", "finally"])
        _ = seen
        _ = cancelled
    }
}

// docs/guides/errors.md: Cleaning up
extension Snippets {
    static func errors4() throws {
        var log: [String] = []
        let (work, resolver) = Promise<Int>.pending()
        let cleaned = work
            .ensure { log.append("closed") }
            .ensureThen { after(.seconds(1)).done { log.append("flushed") } }
        resolver.reject(PromiseError.badInput("broken"))
        cleaned
            .catch { log.append("\($0)") }
            .finally { log.append("finally") }
        try EventLoop.current.run()
        assert(log == ["closed", "flushed", "broken", "finally"])
        _ = log
        _ = work
        _ = resolver
        _ = cleaned
    }
}
