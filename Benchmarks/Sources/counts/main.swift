import FloorRows
import Glibc
import NIORows
import OurRows
import TaskRows
import Workload

// counts                        the contestants and their rows
// counts CONTESTANT ROW N       one stretch of N units
// counts CONTESTANT             stretches as they are asked for on standard input, a line `ROW N` each
//
// The answer to each is a line: nanoseconds on the clock, nanoseconds of processor, allocations (-1: not counted),
// peak memory in KiB.

let contestants: [(name: String, rows: [Workload])] = [
    ("ours", OurRows.all),
    ("ours-unnested", OurRows.unnested),
    ("nio", NIORows.plain),
    ("nio-isolated", NIORows.isolated),
    ("tasks", TaskRows.all),
    ("floor", FloorRows.all),
]

func fail(_ message: String) -> Never {
    let line = "counts: \(message)\n"
    _ = write(STDERR_FILENO, line, line.utf8.count)
    exit(64)
}

func measure(_ rows: [Workload], _ row: some StringProtocol, _ count: (some StringProtocol)?) {
    guard let workload = rows.first(where: { $0.row == row }) else { fail("no row \(row)") }
    guard let count, let n = Int(count), n > 0 else { fail("how often?") }
    let cost = workload.measure(n)
    print(cost.wall, cost.cpu, cost.allocations, cost.peak)
    fflush(nil)
}

let arguments = CommandLine.arguments.dropFirst()
if let name = arguments.first {
    guard let rows = contestants.first(where: { $0.name == name })?.rows else { fail("no contestant \(name)") }
    if let row = arguments.dropFirst().first {
        measure(rows, row, arguments.dropFirst(2).first)
    } else {
        while let line = readLine() {
            let words = line.split(separator: " ")
            guard words.count == 2 else { fail("a line is `ROW N`") }
            measure(rows, words[0], words[1])
        }
    }
} else {
    for contestant in contestants { print(contestant.name, contestant.rows.map(\.row).joined(separator: " ")) }
}
