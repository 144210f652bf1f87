import Reactor

extension Report {
    /// Formats the counters of server and loops in Prometheus' text format 0.0.4.
    func prometheusText(_ server: EchoServer) -> String {
        var text = PrometheusText("echo")
        text.addFamily("info", .gauge, "The program; the value is always 1.")
        text.addSample("info", "1", ["version": Options.version])
        text.add("threads", .gauge, "Threads that serve connections.", server.threads)
        text.add("open_connections", .gauge, "Connections that are open.", statistics.open)
        text.add("open_connections_peak", .gauge, "The most connections that were open at once.", peak)
        text.add(
            "connections_limit", .gauge, "The limit on open connections, for each listener.", server.maxConnections)
        text.add("connections_total", .counter, "Connections since the start.", statistics.connections)
        text.add("failed_connections_total", .counter, "Connections that ended with an error.", statistics.failures)
        text.add("received_bytes_total", .counter, "Bytes received; all of them are sent back.", statistics.bytes)
        text.add("draining", .gauge, "1 while the server drains, otherwise 0.", server.isDraining ? 1 : 0)
        let loops =
            loops.count == 1
            ? loops[0].metrics.prometheusText(prefix: "echo_loop")
            : LoopMetrics.prometheusText(of: loops, prefix: "echo_loop")
        return text.text + loops
    }
}
