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

    /// A visitor that leaves during a look or a recording takes them from nobody else.
    static func outlivesItsVisitors() throws {
        try withConsole(at: "127.0.0.1:0") { console in
            let worker = try EventLoop.spawn(name: "worker")
            let gate = Gate()
            defer {
                gate.open()
                worker.stop()
                worker.join()
            }
            _ = try console.ask("/json", until: "\"name\":\"worker\",\"number\"")
            // From now on each look lasts as long as the console waits for a loop.
            worker.submit { gate.wait() }
            for target in ["GET /json", "GET /text", "GET /metrics", "GET /events", "POST /record?seconds=30"] {
                for isReset in [false, true] {
                    let visitor = try hang(connect(to: console.address))
                    try hang(visitor.write("\(target) HTTP/1.1\r\nHost: localhost\r\n\r\n"))
                    // The console reads this later, and needs no look to answer.
                    #expect(try console.ask("/other").status == 404)
                    if isReset { visitor.abort() } else { hang(visitor.close()) }
                    // The console has seen the end.
                    #expect(try console.ask("/other").status == 404)
                    let answer = try console.ask("/json")
                    #expect(answer.status == 200, "\(target): \(answer.body)")
                }
            }
            #expect(try console.ask("/record?seconds=1", "POST").status == 200)
            #expect(!conf.trace)
        }
    }
}
