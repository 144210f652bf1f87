import CLinux
import ReactorLibc

// Reads a loop for a console, on the loop's thread.

extension EventLoop {
    /// The largest descriptor seen so far, plus one.
    package var descriptorLimit: Int { poller.slots.count }

    package func watched(_ descriptor: Int) -> (handler: any ReadinessHandler, interest: Interest)? {
        let slot = poller.slots[descriptor]
        return slot.handler.map { ($0, Interest(rawValue: slot.wanted)) }
    }

    /// The nanoseconds until a timer is due; `nil` if it has ended.
    package func time(untilTimer id: UInt64) -> Int64? {
        if timers.hasUndated { dateTimers() }
        return timers.deadline(of: id).map { $0 - clock.now.nanoseconds }
    }

    /// The kernel's number of the calling thread, which is the loop's.
    package var thread: Int32 { clinux_gettid() }
    package var isOfMainThread: Bool { clinux_gettid() == getpid() }

    package var threadName: String {
        var name = [CChar](repeating: 0, count: 16)
        pthread_getname_np(pthread_self(), &name, name.count)
        return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
    package var isOfPool: Bool { undrivenWork?.isOfPool == true }

    /// The nanoseconds that a recording costs per handler, measured on this thread.
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
