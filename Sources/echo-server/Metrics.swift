import Reactor

extension EchoServer {
    /// What the server and its loop count, for Prometheus, in its text format 0.0.4.
    func prometheusText(_ loop: EventLoop.Metrics) -> String {
        let statistics = statistics
        var text = PrometheusText("echo")
        text.addFamily("info", .gauge, "The program; the value is always 1.")
        text.addSample("info", "1", ["version": Options.version])
        text.add("open_connections", .gauge, "Connections that are open.", statistics.open)
        text.add("open_connections_peak", .gauge, "The most that were open at a time.", statistics.peak)
        text.add("connections_limit", .gauge, "How many may be open at a time, of each listener.", maxConnections)
        text.add("connections_total", .counter, "Connections since the start.", statistics.connections)
        text.add("failed_connections_total", .counter, "Connections that ended with an error.", statistics.failures)
        text.add("received_bytes_total", .counter, "Bytes received; all of them are sent back.", statistics.bytes)
        text.add("draining", .gauge, "1 when the server is about to end, otherwise 0.", isDraining ? 1 : 0)
        return text.text + loop.prometheusText(prefix: "echo_loop")
    }
}
