import Benchmark
import FloorRows
import NIORows
import OurRows
import TaskRows
import Workload

let benchmarks: @Sendable () -> Void = {
    Benchmark.defaultConfiguration = .init(
        metrics: [.wallClock, .throughput], scalingFactor: .kilo, maxDuration: .milliseconds(500))
    let contestants = [
        ("ours", OurRows.all), ("ours-unnested", OurRows.unnested), ("nio", NIORows.plain),
        ("nio-isolated", NIORows.isolated), ("tasks", TaskRows.all), ("floor", FloorRows.all),
    ]
    for (name, rows) in contestants {
        for workload in rows {
            Benchmark("\(workload.row) (\(name))") { benchmark in
                workload.prepare()
                benchmark.startMeasurement()
                workload.run(benchmark.scaledIterations.count)
            }
        }
    }
}
