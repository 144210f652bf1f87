import ReactorConsole

extension Bodies {
    /// Loops that end while the console asks them report nothing, and leave nothing; and the console ends quietly.
    static func reportsNothingOfItsOwn() throws {
        let reports = Shared<[String]>([])
        let handler = conf.logHandler
        conf.logHandler = { event in reports.change { $0.append("\(event)") } }
        defer { conf.logHandler = handler }
        for _ in 0..<5 {
            try withConsole { console in
                let worker = try EventLoop.spawn(name: "worker")
                _ = try console.ask("/text")
                let stream = try hang(connect(to: console.address))
                try hang(stream.write("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n"))
                _ = try hang(stream.read(until: "data: ", limit: 4096))
                EventLoop.withLoop { _ in }
                worker.stop()
                worker.join()
                _ = try console.ask("/json")
                stream.abort()
            }
        }
        #expect(reports.value == [])
    }
}
