// A loop that waits for one timer, which is already due, and ends.
import Reactor

EventLoop.current.schedule(after: .zero) {}
try EventLoop.current.run()
