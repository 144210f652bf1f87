import Exploring
import Glibc
import ModelThreads

@testable import Promises
@testable import Reactor

// interleavings [NAME] [--seconds 60] [--limit 2000] [--preemptions 2] [--replay SCHEDULE]
setvbuf(stdout, nil, _IOLBF, 0)
var arguments = Array(CommandLine.arguments.dropFirst())
func option(_ name: String) -> String? {
    guard let place = arguments.firstIndex(of: "--" + name), place + 1 < arguments.count else { return nil }
    defer { arguments.removeSubrange(place...(place + 1)) }
    return arguments[place + 1]
}
let seconds = Double(option("seconds") ?? "60")!
let limit = Int(option("limit") ?? "2000")!
let most = Int(option("preemptions") ?? "2")!
let schedule = option("replay")
let wanted = arguments.first

if getenv("NO_SIGNALS") == nil { model_watch_signals() }
model_follow(unsafeBitCast(Job.self as AnyClass, to: UnsafeRawPointer.self))
model_follow(unsafeBitCast(ResolverToken.self as AnyClass, to: UnsafeRawPointer.self))

// No wait is long enough to be reported, since a report depends on the time.
HangWatch.gracePeriod.store(.max / 4, ordering: .relaxed)
UndrivenWork.gracePeriod.store(.max / 4, ordering: .relaxed)

checkTheChecker()
prepareThread = { _ = EventLoop.ofCurrentThread }
conf.logHandler = { _ in }
conf.logLimit = nil

let chosen = scenarios.filter { wanted == nil || $0.name == wanted }
if let schedule {
    model_set_title(strdup(chosen[0].name))
    Explorer.replay(schedule.map { UInt8($0.wholeNumberValue!) }, chosen[0].body)
    model_print_steps()
    print("\(chosen[0].name): no failure; \(model_count()) steps")
    exit(0)
}
var total = 0
var unfinished = 0
let end = now() + seconds
for (index, scenario) in chosen.enumerated() {
    // What others have not needed is left for this one.
    let share = (end - now()) / Double(chosen.count - index)
    let (runs, text, isAll) = scenario.explore(
        limit: limit, seconds: max(2 * share, 0.1), preemptions: most)
    print("\(scenario.name): \(runs) interleavings, \(text)")
    total += runs
    if !isAll { unfinished += 1 }
}
print(
    "\(total) interleavings of \(chosen.count) scenarios"
        + (unfinished > 0 ? "; \(unfinished) have more with ≤ \(most) preemptions than the time allowed" : ""))
