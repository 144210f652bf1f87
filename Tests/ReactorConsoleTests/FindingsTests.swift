import ReactorConsole

// What a reader finds.

extension Bodies {
    /// The console answers while another loop is in a handler, and says in which one.
    static func showsAStuckLoop() throws {
        try withConsole { console in
            let worker = try EventLoop.spawn(name: "worker")
            defer { worker.join() }
            let gate = Gate()
            defer {
                gate.open()
                worker.stop()
            }
            // The console has found the loop, so timers note their lines.
            _ = try console.ask("/text", until: "worker")
            _ = try console.ask("/json", until: "\"name\":\"worker\",\"number\"")
            let line = #line + 1
            worker.submit { EventLoop.current.schedule(after: .zero) { gate.wait() } }
            let text = try console.ask("/text?columns=160", until: "is stuck").body
            let first = text.split(separator: "\n").dropFirst().prefix(2).joined(separator: "\n")
            #expect(first.hasPrefix("LOOK HERE FIRST\n! worker is stuck: for "), "\(text)")
            #expect(first.contains("in a timer at ReactorConsoleTests/FindingsTests.swift:\(line); thread "), "\(text)")
            #expect(first.contains(" sleeps"), "\(text)")
            #expect(text.contains("worker (old)"), "\(text)")
            let metrics = try console.ask("/metrics").body
            #expect(metrics.contains("reactor_loop_answers{loop=\"worker\"} 0"), "\(metrics)")
        }
    }

    static func showsConnections() throws {
        try withConsole { console in
            let listener = try Listener.bind("127.0.0.1:0")
            let line = #line + 1
            let served = listener.serve { connection in connection.forEachChunk { connection.write($0) } }
            let clients = try (0..<3).map { _ in try hang(connect(to: listener.localAddress)) }
            for client in clients {
                try hang(client.write("hello"))
                _ = try hang(client.read(exactly: 5))
            }
            // A loop that has no time for the console for a while is shown as it was: so these ask again.
            let json = try console.ask("/json", until: "\"received\":5").body
            // Three of the server, and the test's own, which wait for nothing but are not in the poller; and its visitor.
            #expect(json.contains("\"received\":5,\"sent\":5,\"queued\":0,\"waitsFor\":\"read\""), "\(json)")
            #expect(
                json.contains("\"line\":\"ReactorConsoleTests/FindingsTests.swift:\(line)\",\"inUse\":3"), "\(json)")
            for width in [80, 160] {
                let text = try console.ask("/text?columns=\(width)").body
                for client in clients { #expect(text.contains(":\(client.localAddress!.port)"), "\(text)") }
                #expect(
                    text.contains(":\(console.address.port)/trace?seconds=60'") == !console.address.isUnix, "\(text)")
            }
            let text = try console.ask("/text?connections=1&order=received").body
            #expect(text.contains("left out: ") && text.contains("connections"), "\(text)")
            clients.forEach { $0.abort() }
            listener.close()
            _ = try hang(served)
        }
    }

    /// What waits for what, from the work at the root, with lines; the same lines are one group.
    static func showsPromisesAsTrees() throws {
        try withConsole { console in
            try withTracing {
                let (made, mapped) = (#line + 1, #line + 2)
                let (lost, resolve) = Guarantee<Int>.pending()
                let waiting = (0..<100).map { _ in lost.map { $0 + 1 }.named("sum") }
                let timer = after(.seconds(1000)).map { 1 }
                let both = when(fulfilled: [waiting[0].asPromise(), timer.asPromise()])
                let json = try console.ask("/json", until: "\"operation\":\"when\"").body
                let file = "ReactorConsoleTests/FindingsTests.swift"
                #expect(json.contains("\"depth\":0,\"operation\":\"made\",\"line\":\"\(file):\(made)\""), "\(json)")
                #expect(json.contains("\"waitsFor\":\"whoever has the resolver\""), "\(json)")
                #expect(
                    json.contains("\"depth\":1,\"operation\":\"map\",\"line\":\"\(file):\(mapped)\",\"name\":\"sum\""),
                    "\(json)")
                #expect(json.contains("\"count\":100,"), "\(json)")
                #expect(json.contains("\"waitsFor\":\"timer due in 1"), "\(json)")
                #expect(json.contains("\"operation\":\"when\""), "\(json)")
                let text = try console.ask("/text", until: "└ map").body
                #expect(text.contains("└ map at \(file):\(mapped) \"sum\" ×100"), "\(text)")
                resolve(1)
                timer.cancel()
                both.cauterize()
            }
        }
    }

    /// Promises of a loop that has ended can never settle there.
    static func marksLostPromises() throws {
        try withConsole { console in
            try withTracing {
                let kept = EventLoop.withLoop { _ in Promise<Int>.pending() }
                let text = try console.ask("/text", until: "LOST").body
                #expect(text.contains("LOST: its loop has ended"), "\(text)")
                kept.resolver.fulfill(1)
            }
        }
    }

    static func showsPoolsLimitersAndEvents() throws {
        try withConsole { console in
            let limiter = Limiter(1)
            let (first, end) = Promise<Void>.pending()
            limiter.run { first }.cauterize()
            let second = limiter.run { Promise.value }
            let gate = Gate()
            let pool = try ThreadPool(name: "jobs", threads: 1)
            let jobs = (0..<3).map { _ in Promise.value.map(on: pool) { gate.wait() } }
            withTracing { _ = Promise<Int>.pending().promise }
            // Those with names are known without tracing.
            let named = Promise<Int>.pending()
            named.promise.named("answer").cauterize()
            let text = try console.ask("/text?columns=160", until: "limiter \"limiter\"").body
            #expect(text.contains("is full: 1 of 1, 1 wait, the oldest "), "\(text)")
            #expect(text.contains("; none finished for "), "\(text)")
            #expect(text.contains("! thread pool \"jobs\" is full: 1 of 1, 2 wait"), "\(text)")
            #expect(
                text.contains("made at ReactorConsoleTests/FindingsTests.swift:") && text.contains("\"answer\""),
                "\(text)")
            named.resolver.fulfill(1)
            let json = try console.ask("/json", until: "\"kind\":\"abandoned\"").body
            #expect(json.contains("\"kind\":\"limiter\",\"name\":\"limiter\""), "\(json)")
            #expect(json.contains("\"inUse\":1,\"free\":0,\"limit\":1,\"waiting\":1"), "\(json)")
            #expect(json.contains("\"kind\":\"thread pool\",\"name\":\"jobs\""), "\(json)")
            #expect(
                json.contains("\"kind\":\"abandoned\",\"text\":\"Promise\\u003cInt\\u003e was abandoned"), "\(json)")
            try withTracing {
                let line = #line + 1
                let third = limiter.run { Promise.value }
                let job = Promise.value.map(on: pool) {}
                let text = try console.ask("/text?columns=160", until: "a job of").body
                #expect(text.contains("← a place of limiter \"limiter\" (1 of 1 in use, 2 wait)"), "\(text)")
                #expect(text.contains("Limiter.run at ReactorConsoleTests/FindingsTests.swift:\(line)"), "\(text)")
                let words = text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
                #expect(
                    words.contains("; Limiter.run at ReactorConsoleTests/FindingsTests.swift:\(line) waits"), "\(text)")
                #expect(text.contains("← a job of thread pool \"jobs\""), "\(text)")
                third.cauterize()
                job.cauterize()
            }
            gate.open(4)
            end.fulfill()
            try hang(second)
            _ = try hang(when(fulfilled: jobs))
        }
    }

    /// Rates are of a second at least, however soon after another an answer is.
    static func showsALateLoop() throws {
        try withConsole { console in
            let worker = try EventLoop.spawn(name: "worker")
            defer {
                worker.stop()
                worker.join()
            }
            let line = #line + 2
            worker.submit {
                EventLoop.current.schedule(every: .milliseconds(100)) {
                    let end = ContinuousClock.now + .milliseconds(60)
                    while ContinuousClock.now < end {}
                }
            }
            let text = try console.ask("/text?columns=160", until: "worker is late").body
            let place = "timer at ReactorConsoleTests/FindingsTests.swift:\(line)"
            #expect(text.contains("! worker is late: lag p99 ") && text.contains(" ms, \(place)"), "\(text)")
            // Unknown for the loop's first second.
            var busy: [Double] = []
            while busy.count < 3 {
                let loop = try console.ask("/json").body.split(separator: "\"name\":\"worker\"").last!
                let share = loop.split(separator: "\"busy\":").dropFirst().first?.prefix { $0 != "," } ?? ""
                if let share = Double(share) { busy.append(share) } else { #expect(share == "null") }
            }
            #expect(busy.allSatisfy { $0 > 0.2 }, "\(busy)")
        }
    }

    /// The file has a track per loop, nested slices, and arrows whose ends are slices.
    static func records() throws {
        try withConsole { console in
            var rounds = 0
            let line = #line + 1
            let timer = EventLoop.current.schedule(every: .milliseconds(5)) {
                after(.zero).map { 1 }.done { rounds += $0 }
            }
            let text = try console.ask("/record?seconds=1", "POST").body
            timer.cancel()
            #expect(rounds > 0)
            #expect(text.hasPrefix("{\"displayTimeUnit\":\"ms\",\"otherData\":{"), "\(text.prefix(200))")
            #expect(text.contains("\"name\":\"thread_name\""))
            #expect(
                text.contains("\"name\":\"timer at ReactorConsoleTests/FindingsTests.swift:\(line)\""),
                "\(text.prefix(3000))")
            #expect(text.contains("\"name\":\"map at ReactorConsoleTests/FindingsTests.swift:\(line + 1)\""))
            #expect(text.contains("\"ph\":\"s\"") && text.contains("\"ph\":\"f\""))
            #expect(!conf.trace)
        }
    }
}
