// Made by .ci/snippets.py from docs/guides/patterns.md; do not edit.
// swift-format-ignore-file
import Glibc
import Promises
import Reactor

// docs/guides/patterns.md: At most so many at a time
extension Snippets {
    static func patterns1() throws {
        let limiter = Limiter(2)
        var (running, most) = (0, 0)

        func render(_ page: Int) -> Promise<String> {
            limiter.run {
                running += 1
                most = max(most, running)
                return after(.milliseconds(1)).map { "page \(page)" }       // stands for the work
                    .ensure { running -= 1 }
            }
        }

        let pages = (1...6).map(render)
        pages[4].cancel()                                                   // it was waiting: it never begins
        let results = hang(when(resolved: pages)).map { try? $0.get() }
        assert(results == ["page 1", "page 2", "page 3", "page 4", nil, "page 6"])
        assert(most == 2 && limiter.active == 0)
        _ = limiter
        _ = running
        _ = most
        _ = pages
        _ = results
    }
}

// docs/guides/patterns.md: Stop, and leave nothing behind
extension Snippets {
    static func patterns2() throws {
        func worker(_ script: String) -> Promise<ChildExitStatus> {
            Promise { resolver in
                let child = try ChildProcess.spawn("sh", arguments: ["-c", script])
                child.exit.done { resolver.fulfill($0) }
                resolver.onCancelThen {
                    try? child.kill(SIGTERM)
                    return race(child.exit.asVoid(), after(.milliseconds(20))).then {
                        try? child.kill(SIGKILL)                            // nothing happens if it has ended
                        return child.exit.asVoid()
                    }
                }
            }
        }

        var slots = 0
        let workers = ["exec sleep 60", "trap '' TERM; exec sleep 60"].map { script in
            slots += 1
            return worker(script).ensure { slots -= 1 }
        }
        func stop() -> Guarantee<Void> { when(guarantees: workers.map { $0.cancelAndWait() }).asVoid() }

        hang(after(.milliseconds(5)).then { stop() })                       // or nextSignal(SIGTERM).then { stop() }
        assert(slots == 0 && workers.allSatisfy(\.isCancelled))
        _ = slots
        _ = workers
    }
}
