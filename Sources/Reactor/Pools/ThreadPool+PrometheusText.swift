extension ThreadPool.Metrics {
    /// The pool's metrics in Prometheus' text format.
    /// - Returns: the text; see `LoopMetrics.prometheusText(prefix:labels:)`.
    public func prometheusText(prefix: String = "pool", labels: [String: String] = [:]) -> String {
        var text = PrometheusText(prefix, labels)
        text.add("jobs_completed_total", .counter, "Jobs that have run.", completed)
        text.add("threads", .gauge, "Threads that have been started.", threads)
        text.add("threads_limit", .gauge, "The limit on threads.", threadLimit)
        text.add("threads_busy", .gauge, "Threads that run a job.", busy)
        text.add("jobs_queued", .gauge, "Jobs that wait for a thread.", queued)
        text.add("jobs_queued_limit", .gauge, "The limit on jobs that wait for a thread.", queueLimit)
        return text.text
    }
}
