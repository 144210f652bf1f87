@testable import PromisesTestSupport

private func at(_ line: UInt) -> String { "\(#fileID):\(line)" }

/// Reports of promises of operators with `on:`. In separate processes, since tracing is process-wide.
struct OnTracingTests {
    @Test func anErrorThatPassesByKeepsItsOrigin() throws {
        let line: UInt = #line + 2
        let lines = loggedInLoop { _ in
            let failed = Promise<Int>(error: Flaw(1))
            _ = failed.map(on: nil) { $0 }.tap(on: nil) { _ in }
            _ = failed.tap(on: nil) { _ in }
        }
        expect(lines.count == 2 && lines.last == "unhandled rejection: Flaw(number: 1) (promise made at \(at(line)))")
    }

    @Test(.ownThread) func chains() async {
        await #expect(processExitsWith: .success) { try Bodies.chains() }
    }

    private enum Bodies {
        static func chains() throws {
            conf.trace = true
            try EventLoop.withLoop { _ throws in
                let line: UInt = #line + 1
                let (promise, resolver) = Promise<Int>.pending()
                let end = promise.map(on: nil) { $0 }
                    .then(on: ThreadPool.shared) { Promise.value($0) }
                    .tap(on: nil) { _ in }
                    .recover(on: nil) { _ in Promise.value(1) }
                let lines = ["map", "then", "tap", "recover"].enumerated()
                let steps = lines.map { step in "\(step.element) at \(at(line + 1 + UInt(step.offset)))" }
                let chain = (["made at \(at(line))"] + steps).joined(separator: " → ")
                let seen = String(reflecting: end)
                guard seen == "Promise<Int>.pending (\(chain))" else { throw Mismatch(seen) }
                guard EventLoop.pendingPromises.count == steps.count + 1 else { throw Mismatch("pending") }
                resolver.fulfill(1)
                try hang(end)

                let start: UInt = #line + 1
                let started = Guarantee(on: Shelf()) { 1 }
                let text = String(reflecting: started)
                guard text.contains("made at \(at(start))") else { throw Mismatch(text) }

                let (inner, innerResolver) = Promise<Int>.pending()
                let outer = Promise.value(1).then(on: nil) { _ in inner }.named("outer")
                let waiting = String(reflecting: outer)
                guard waiting.contains("[awaits: made at ") else { throw Mismatch(waiting) }
                innerResolver.fulfill(1)
            }
        }
    }

    private struct Mismatch: Error {
        let seen: String
        init(_ seen: String) { self.seen = seen }
    }
}
