import Promises
import Reactor
import ReactorIO

extension Snapshot {
    /// The loops, listeners, pools and events in Prometheus's text format 0.0.4.
    var prometheusText: String {
        let now = LoopClock.monotonic.now.nanoseconds
        var text = PrometheusText("reactor")
        for loop in loops {
            text.setLabels(["loop": loop.name])
            let isStuck = loop.state == .stuck
            text.add("loop_answers", .gauge, "1 if the loop answers the console.", loop.state == .answers ? 1 : 0)
            text.add(
                "loop_silence_seconds", .gauge, "How long the loop has not answered.", .nanoseconds(loop.silence))
            text.add(
                "loop_stuck_seconds", .gauge, "How long the handler has run in which the loop is stuck.",
                .nanoseconds(isStuck ? loop.current?.time ?? 0 : 0))
            if let lags = loop.loop.lags(ofSeconds: 60, at: now) {
                text.add(
                    "loop_lag_max_seconds", .gauge, "The largest lag of the last minute.",
                    .nanoseconds(lags.most))
                text.add(
                    "loop_lag_p99_seconds", .gauge, "The lag of the last minute, p99.", .nanoseconds(lags.p99))
            }
            if let busy = loop.loop.busy {
                text.add(
                    "loop_busy_ratio", .gauge, "The share of a second that the loop works.",
                    .nanoseconds(Int64(busy * 1e9)))
            }
        }
        for object in objects {
            let facts = object.facts
            text.setLabels(["kind": facts.form.rawValue, "loop": object.loop, "name": object.name])
            text.add("object_in_use", .gauge, "Connections, resources, calls, threads or bytes in use.", facts.inUse)
            text.add("object_waiting", .gauge, "What waits for them.", facts.waiting)
            if let limit = facts.limit { text.add("object_limit", .gauge, "The limit on what is in use.", limit) }
            if let ends = facts.ends { text.add("object_finished_total", .counter, "Ended uses.", ends.count) }
            if let free = facts.free { text.add("object_free", .gauge, "What is free or idle.", free) }
        }
        text.setLabels([:])
        text.add("connections", .gauge, "Connections of all loops.", allConnections.count)
        text.add("events_logged_total", .counter, "Log events since the console was started.", eventCount)
        return LoopMetrics.prometheusText(of: metrics) + text.text
    }
}
