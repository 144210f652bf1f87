// A loop that waits for one timer, of which the time has come, and ends.
import Reactor

EventLoop.current.schedule(after: .zero) {}
try EventLoop.current.run()
