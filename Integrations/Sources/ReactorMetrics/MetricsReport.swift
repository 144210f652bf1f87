import Metrics
import Promises
import Reactor
import ReactorIO

/// Reports loops, groups, pools and listeners to swift-metrics, at regular intervals.
///
/// ```swift
/// let report = MetricsReport(every: .seconds(10))
/// report.add(EventLoop.current, name: "main")
/// report.add(group, name: "worker")
/// report.add(listener, name: "https")
/// ```
///
/// Belongs to the loop of the thread that creates it, and does not keep that loop alive. Groups are queried by a job on
/// each of their loops. Reporting ends when this is cancelled or released.
///
/// The names are those of `prometheusText`: `reactor_turns_total`, `reactor_ready_jobs` and so on, with the label
/// `loop`, `pool` or `listener`. A counter is incremented by the difference since the last report.
public final class MetricsReport: LoopHandle {
    private let loop: EventLoop
    private let recorder: Recorder
    private var timer: EventLoop.Timer?
    private var sources: [() -> Void] = []

    /// - Parameters:
    ///   - interval: the time between two reports; the first report is made after one interval.
    ///   - prefix: the prefix of all names.
    ///   - factory: `nil` for the factory of `MetricsSystem`.
    @available(*, noasync, message: "an async function has no loop of its own")
    public init(
        every interval: Duration = .seconds(10), prefix: String = "reactor", factory: (any MetricsFactory)? = nil
    ) {
        loop = EventLoop.current
        recorder = Recorder(prefix, factory ?? MetricsSystem.factory)
        let timer = loop.schedule(every: interval) { [weak self] in self?.recordNow() }
        timer.unref()
        self.timer = timer
    }

    deinit { timer?.cancel() }

    /// Ends the reports.
    /// - Returns: false if they had already ended.
    @discardableResult
    public func cancel() -> Bool {
        sources = []
        return timer.take()?.cancel() ?? false
    }

    /// `true` until cancelled.
    public var isActive: Bool { timer?.isActive ?? false }

    /// Reports now, in addition to the regular reports. The values of groups follow a little later.
    public func recordNow() {
        for source in sources { source() }
    }

    // MARK: Sources

    /// Reports a loop of this thread.
    public func add(_ loop: EventLoop, name: String) {
        sources.append { [recorder, weak loop] in
            if let loop { recorder.record(loop.metrics, ["loop": name]) }
        }
    }

    /// Reports each loop of a group, as `name-0`, `name-1` and so on. The group is not retained.
    public func add(_ group: LoopGroup, name: String) {
        sources.append { [recorder, weak group] in
            group?.collect { EventLoop.current.metrics }.done { answers in
                for (index, answer) in answers.enumerated() {
                    guard case .success(let metrics) = answer else { continue }
                    recorder.record(metrics, ["loop": "\(name)-\(index)"])
                }
            }
        }
    }

    /// Reports a pool of threads.
    public func add(_ pool: ThreadPool, name: String) {
        sources.append { [recorder] in recorder.record(pool.metrics, ["pool": name]) }
    }

    /// Reports a listener of this thread's loop: its connections, and the refused ones. The listener is not retained.
    public func add(_ listener: Listener, name: String) {
        sources.append { [recorder, weak listener] in
            guard let listener else { return }
            let labels = ["listener": name]
            recorder.gauge("active_connections", labels, Double(listener.activeConnections))
            recorder.gauge("lingering_connections", labels, Double(listener.lingeringConnections))
            recorder.counter("evicted_connections_total", labels, listener.evictedConnections)
        }
    }

    /// Reports a pool of resources of this thread's loop. The pool is not retained.
    public func add<Resource>(_ pool: Pool<Resource>, name: String) {
        sources.append { [recorder, weak pool] in
            guard let counts = pool?.counts else { return }
            let labels = ["pool": name]
            recorder.gauge("pool_resources_making", labels, Double(counts.making))
            recorder.gauge("pool_resources_open", labels, Double(counts.open))
            recorder.gauge("pool_resources_idle", labels, Double(counts.idle))
            recorder.gauge("pool_requests_waiting", labels, Double(counts.waiting))
        }
    }
}
