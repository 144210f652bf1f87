import Glibc
import OurRows
import Promises
import ReactorIO
import Workload

// Runs stretches of the library's own rows on request from standard input: a line `ROW N` each. `.ci/counts.py` runs it
// under callgrind, which writes its counts at the beginning and at the end of each stretch.

// A loop that the main thread has never driven takes other branches, which programs soon leave.
hang(after(.zero))
while let line = readLine() {
    let words = line.split(separator: " ")
    guard words.count == 2, let row = OurRows.all.first(where: { $0.row == words[0] }), let count = Int(words[1]) else {
        print("counted-rows: a line is `ROW N`, not '\(line)'")
        exit(64)
    }
    _ = row.measure(count)
}
