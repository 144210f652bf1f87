// Fetches an address repeatedly: fetch-loop ADDRESS REQUESTS CONCURRENCY. Prints the number of requests, the process's
// CPU time and the elapsed time in nanoseconds, not counting the first tenth.
import Glibc
import Promises
import Reactor
import ReactorHTTP

func nanoseconds(_ clock: clockid_t) -> Int {
    var time = timespec()
    clock_gettime(clock, &time)
    return time.tv_sec * 1_000_000_000 + time.tv_nsec
}

let (address, requests) = (CommandLine.arguments[1], Int(CommandLine.arguments[2])!)
let concurrency = Int(CommandLine.arguments[3])!
var options = HTTPClient.Options()
options.proxies = Proxies()
options.connections.perKey = concurrency
let client = HTTPClient(options)

@MainActor func run(_ count: Int) throws {
    let fetched = when(fulfilled: 0..<count, concurrently: concurrency) { _ in
        client.fetch(address).then { try $0.validated().body.bytes() }.done { body in precondition(body.count == 14) }
    }
    _ = try hang(fetched)
}

try run(requests / 10)
let (cpu, wall) = (nanoseconds(CLOCK_PROCESS_CPUTIME_ID), nanoseconds(CLOCK_MONOTONIC))
try run(requests)
print("RESULT", requests, nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - cpu, nanoseconds(CLOCK_MONOTONIC) - wall)
client.close()
