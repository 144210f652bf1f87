// Prometheus' text exposition format 0.0.4, as its documentation defines it.

extension LoopMetrics {
    /// Returns the metrics in Prometheus' text format 0.0.4, to be served as `text/plain; version=0.0.4`.
    ///
    /// ```
    /// # HELP reactor_turns_total Turns of the loop.
    /// # TYPE reactor_turns_total counter
    /// reactor_turns_total{loop="main"} 42
    /// ```
    ///
    /// Omits metrics that were not measured; see `EventLoop.measured`.
    /// - Parameters:
    ///   - prefix: the prefix of all names. Invalid characters become underscores.
    ///   - labels: labels that distinguish this loop. Invalid characters in their names become underscores; their
    ///     values may be any text.
    /// - Returns: the text; each line ends with a line break.
    public func prometheusText(prefix: String = "reactor", labels: [String: String] = [:]) -> String {
        var text = PrometheusText(prefix, labels)
        add(to: &text)
        return text.text
    }

    /// Returns the metrics of several loops as one text. As the format requires, each metric appears once, with one
    /// sample per loop, labelled `loop`. The loops' names must differ.
    /// - Parameters:
    ///   - loops: each loop's name and metrics.
    ///   - prefix: the prefix of all names.
    ///   - labels: further labels for all samples.
    public static func prometheusText(
        of loops: [(name: String, metrics: LoopMetrics)], prefix: String = "reactor", labels: [String: String] = [:]
    ) -> String {
        var text = PrometheusText(prefix)
        for loop in loops {
            text.setLabels(labels.merging(["loop": loop.name]) { _, own in own })
            loop.metrics.add(to: &text)
        }
        return text.text
    }

    private func add(to text: inout PrometheusText) {
        text.add("turns_total", .counter, "Turns of the loop.", turns)
        text.add("jobs_total", .counter, "Jobs and handlers that have run.", jobs)
        text.add("events_total", .counter, "Events that epoll has reported.", events)
        text.add("timers_fired_total", .counter, "Timers that have fired.", timersFired)
        text.add("wakeups_total", .counter, "How often another thread had to wake the loop.", wakeups)
        if let slowHandlers {
            text.add("slow_handlers_total", .counter, "Handlers that took longer than the threshold.", slowHandlers)
        }
        text.addFamily("system_calls_total", .counter, "System calls of the loop's thread.")
        for (call, count) in systemCalls.sorted(by: { $0.key.description < $1.key.description }) {
            text.addSample("system_calls_total", "\(count)", ["call": call.description])
        }
        addTimes(to: &text)
        text.add("ready_jobs", .gauge, "Jobs that are ready.", readyJobs)
        text.add("waiting_handlers", .gauge, "Handlers that wait for a result.", waitingHandlers)
        text.add("timers", .gauge, "Timers that have not fired.", timers)
        text.add("descriptors", .gauge, "Descriptors that are watched.", descriptors)
        text.add("signal_watches", .gauge, "Signal watches.", signalWatches)
        text.add("holds", .gauge, "Holds that have not been released.", holds)
        text.add("external_work", .gauge, "Jobs of pools and tasks that the loop waits for.", externalWork)
    }

    private func addTimes(to text: inout PrometheusText) {
        if let timeWaiting {
            text.add("waiting_seconds_total", .counter, "Time that the loop has waited.", timeWaiting)
        }
        if let longestTurn {
            let help = "The longest time between two polls of the descriptors."
            text.add("longest_turn_seconds", .gauge, help, longestTurn)
        }
        if let longestHandler {
            let help = "The longest time that one handler held the loop."
            text.add("longest_handler_seconds", .gauge, help, longestHandler.duration)
        }
    }
}

/// Writes metrics from one or more sources. A metric's help must be one line, and its name valid in Prometheus.
package struct PrometheusText {
    package enum MetricKind: String { case counter, gauge }

    /// The metrics' texts, one per name, since a metric's samples must directly follow its help and type.
    private var families: [String] = []
    private var indices: [String: Int] = [:]
    private let prefix: String
    private var labels: [String: String] = [:]

    package init(_ prefix: String, _ labels: [String: String] = [:]) {
        self.prefix = Self.name(prefix, allowing: ":")
        setLabels(labels)
    }

    package mutating func setLabels(_ labels: [String: String]) {
        self.labels = [String: String](
            labels.map { (Self.name($0.key, allowing: nil), $0.value) }, uniquingKeysWith: { first, _ in first })
    }

    package var text: String { families.joined() }

    package mutating func add(_ name: String, _ kind: MetricKind, _ help: String, _ value: Int) {
        addFamily(name, kind, help)
        addSample(name, "\(value)")
    }

    package mutating func add(_ name: String, _ kind: MetricKind, _ help: String, _ value: Duration) {
        addFamily(name, kind, help)
        addSample(name, Self.seconds(value))
    }

    /// Adds the help and type once per name.
    package mutating func addFamily(_ name: String, _ kind: MetricKind, _ help: String) {
        if indices[name] != nil { return }
        indices[name] = families.count
        families.append("# HELP \(prefix)_\(name) \(help)\n# TYPE \(prefix)_\(name) \(kind.rawValue)\n")
    }

    package mutating func addSample(_ name: String, _ value: String, _ own: [String: String] = [:]) {
        guard let index = indices[name] else { return assertionFailure("a sample without its family: \(name)") }
        let all = labels.merging(own) { _, own in own }.sorted { $0.key < $1.key }
        let list = all.map { "\($0.key)=\"\(Self.escaped($0.value))\"" }.joined(separator: ",")
        families[index] += "\(prefix)_\(name)\(list.isEmpty ? "" : "{\(list)}") \(value)\n"
    }

    /// Formats exact decimals; a floating-point number would end in meaningless digits.
    static func seconds(_ duration: Duration) -> String {
        let nanoseconds = max(duration.clampedNanoseconds, 0)
        var fraction = String(nanoseconds % 1_000_000_000)
        fraction = String(repeating: "0", count: 9 - fraction.count) + fraction
        while fraction.count > 1 && fraction.last == "0" { fraction.removeLast() }
        return "\(nanoseconds / 1_000_000_000).\(fraction)"
    }

    /// Escapes the only forbidden characters in a label's value: backslash, quotation mark and newline.
    static func escaped(_ value: String) -> String {
        var escaped = String.UnicodeScalarView()
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\\": escaped.append(contentsOf: "\\\\".unicodeScalars)
            case "\"": escaped.append(contentsOf: "\\\"".unicodeScalars)
            case "\n": escaped.append(contentsOf: "\\n".unicodeScalars)
            default: escaped.append(scalar)
            }
        }
        return String(escaped)
    }

    /// Replaces forbidden characters. Names consist of ASCII letters, underscores and digits, but do not begin with a
    /// digit; a metric's name may also contain colons.
    private static func name(_ text: String, allowing other: Unicode.Scalar?) -> String {
        var name = ""
        for scalar in text.unicodeScalars {
            let isDigit = ("0"..."9").contains(scalar)
            let isLetter = ("a"..."z").contains(scalar) || ("A"..."Z").contains(scalar)
            if isDigit && name.isEmpty { name = "_" }
            name.unicodeScalars.append(isDigit || isLetter || scalar == other ? scalar : "_")
        }
        return name.isEmpty ? "_" : name
    }
}
