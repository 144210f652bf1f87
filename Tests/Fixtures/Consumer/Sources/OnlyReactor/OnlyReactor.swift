import Reactor

@main enum OnlyReactor {
    static func main() throws {
        let loop = EventLoop.current
        var order: [String] = []
        loop.schedule(after: .milliseconds(1)) { order.append("timer") }
        loop.enqueue { order.append("job") }
        try loop.run()
        precondition(order == ["job", "timer"])
    }
}
