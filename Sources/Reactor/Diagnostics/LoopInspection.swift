import CLinux
import ReactorLibc

// On the loop's thread, for a console.

extension EventLoop {
    /// One more than the largest descriptor seen so far.
    package var descriptorLimit: Int { poller.slots.count }

    package func watched(_ descriptor: Int) -> (handler: any ReadinessHandler, interest: Interest)? {
        let slot = poller.slots[descriptor]
        return slot.handler.map { ($0, Interest(rawValue: slot.wanted)) }
    }

    /// Returns the nanoseconds until the timer is due; `nil` if it has ended.
    package func time(untilTimer id: UInt64) -> Int64? {
        if timers.hasUndated { dateTimers() }
        return timers.deadline(of: id).map { $0 - clock.now.nanoseconds }
    }

    /// The kernel's id of the loop's thread, the calling one.
    package var thread: Int32 { clinux_gettid() }
    package var isOfMainThread: Bool { clinux_gettid() == getpid() }

    package var threadName: String {
        var name = [CChar](repeating: 0, count: 16)
        pthread_getname_np(pthread_self(), &name, name.count)
        return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
    package var isOfPool: Bool { undrivenWork?.isOfPool == true }

    /// Returns the nanoseconds that a recording adds to each handler, measured on this thread.
    package func measureRecording() -> Int64 {
        let (rounds, recording) = (4096, LoopRecording(of: jobs, atMost: 4096))
        let content = LoopRecording.Content.handler(.job, nil, descriptor: nil, subject: nil)
        let began = clock.now.nanoseconds
        for _ in 0..<rounds {
            if let begun = recording.begin(content, at: began, nil) {
                recording.end(begun, at: clock.now.nanoseconds, wasInterrupted: true)
            }
        }
        return (clock.now.nanoseconds - began) / Int64(rounds)
    }
}
