import Metrics
import Reactor

/// The metrics of a report, each created when it is first recorded.
final class Recorder {
    private struct Key: Hashable {
        let name: String
        let labels: [String: String]

        /// In a fixed order: some factories take another order for another metric.
        var dimensions: [(String, String)] { labels.sorted { $0.key < $1.key }.map { ($0.key, $0.value) } }
    }

    private let prefix: String
    private let factory: any MetricsFactory
    private var gauges: [Key: Gauge] = [:]
    /// The counters, each with the value last reported.
    private var counters: [Key: (counter: Counter, value: Int)] = [:]

    init(_ prefix: String, _ factory: any MetricsFactory) {
        self.prefix = prefix
        self.factory = factory
    }

    deinit {
        for gauge in gauges.values { gauge.destroy() }
        for entry in counters.values { entry.counter.destroy() }
    }

    func gauge(_ name: String, _ labels: [String: String], _ value: Double) {
        let key = Key(name: name, labels: labels)
        let gauge =
            gauges[key]
            ?? Gauge(label: "\(prefix)_\(name)", dimensions: key.dimensions, factory: factory)
        gauges[key] = gauge
        gauge.record(value)
    }

    /// - Parameter value: the total, which never decreases.
    func counter(_ name: String, _ labels: [String: String], _ value: Int) {
        let key = Key(name: name, labels: labels)
        let entry =
            counters[key]
            ?? (
                Counter(label: "\(prefix)_\(name)", dimensions: key.dimensions, factory: factory), 0
            )
        entry.counter.increment(by: max(value - entry.value, 0))
        counters[key] = (entry.counter, value)
    }

    func record(_ metrics: LoopMetrics, _ labels: [String: String]) {
        counter("turns_total", labels, metrics.turns)
        counter("jobs_total", labels, metrics.jobs)
        counter("events_total", labels, metrics.events)
        counter("timers_fired_total", labels, metrics.timersFired)
        counter("wakeups_total", labels, metrics.wakeups)
        for (call, count) in metrics.systemCalls {
            counter("system_calls_total", labels.merging(["call": call.description]) { old, _ in old }, count)
        }
        if let count = metrics.slowHandlers { counter("slow_handlers_total", labels, count) }
        if let time = metrics.timeWaiting { gauge("waiting_seconds_total", labels, time.seconds) }
        if let time = metrics.longestTurn { gauge("longest_turn_seconds", labels, time.seconds) }
        if let handler = metrics.longestHandler { gauge("longest_handler_seconds", labels, handler.duration.seconds) }
        gauge("ready_jobs", labels, Double(metrics.readyJobs))
        gauge("waiting_handlers", labels, Double(metrics.waitingHandlers))
        gauge("timers", labels, Double(metrics.timers))
        gauge("descriptors", labels, Double(metrics.descriptors))
        gauge("signal_watches", labels, Double(metrics.signalWatches))
        gauge("holds", labels, Double(metrics.holds))
        gauge("external_work", labels, Double(metrics.externalWork))
    }

    func record(_ metrics: ThreadPool.Metrics, _ labels: [String: String]) {
        gauge("pool_threads", labels, Double(metrics.threads))
        gauge("pool_busy", labels, Double(metrics.busy))
        gauge("pool_queued", labels, Double(metrics.queued))
        counter("pool_jobs_total", labels, metrics.completed)
    }
}

extension Duration {
    fileprivate var seconds: Double { Double(components.seconds) + Double(components.attoseconds) * 1e-18 }
}
