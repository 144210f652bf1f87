extension EventLoop {
    /// Shows the loop's handlers to `probe`, or changes what it measures. Called on the loop's thread.
    /// - Parameter isMeasuring: true to read the clock for each turn and handler.
    package func show(to probe: LoopProbe?, isMeasuring: Bool = false) {
        assertOwner()
        if let probe, meter.probe === probe, probe.isMeasuring == isMeasuring { return }
        probe?.isMeasuring = isMeasuring
        meter.probe = probe
    }

    /// Keeps the observer's own handler out of the longest times. Called on the loop's thread.
    package func disregardHandler() { meter.probe?.disregardHandler() }

    /// Records at most `most` slices in the loop's probe, which must be measuring.
    package func beginRecording(atMost most: Int) {
        meter.probe?.recording = LoopRecording(of: jobs, atMost: most)
    }

    package func endRecording() -> LoopRecording? { meter.probe?.recording.take() }

    /// Returns the loop's state in constant time, and resets the longest times. Called on the loop's thread.
    package func beat() -> LoopBeat {
        let probe = meter.probe
        probe?.disregardHandler()
        defer { probe?.restart() }
        return LoopBeat(
            metrics: metrics(countingJobs: LoopBeat.mostJobs), nanosecondsWaiting: meter.nanosecondsWaiting,
            longestHandler: probe?.longest, nearestTimer: nextDeadline.map { $0.nanoseconds - clock.now.nanoseconds },
            moment: clock.now.nanoseconds)
    }
}

/// The numbers that a loop sends to an observer several times a second.
package struct LoopBeat: Sendable {
    /// The limit for the count of ready jobs, which are counted one by one.
    package static var mostJobs: Int { 10_000 }

    package let metrics: LoopMetrics
    package let nanosecondsWaiting: Int64
    /// Since the previous beat, if measured.
    package let longestHandler: SlowHandler?
    /// The nanoseconds until the first timer is due; negative if late.
    package let nearestTimer: Int64?
    package let moment: Int64
}
