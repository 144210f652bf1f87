import Reactor

/// A timer is one of its loop's.
func timerInTask(_ timer: EventLoop.Timer) {
    Task {  // error: risks causing data races
        _ = timer.isActive
    }
}
