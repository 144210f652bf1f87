import Testing

@testable import Promises
@testable import ReactorHTTP
@testable import ReactorIO

/// Clients of a server that drains: each request that has been sent before the client can know of the end is answered.
struct DrainTests {
    private static let get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

    private func answer(_ client: Connection) throws -> String {
        let head = try hang(client.read(until: "\r\n\r\n"), timeout: patience)
        let text = String(decoding: head ?? [], as: UTF8.self)
        if text.isEmpty { return "" }
        return text + String(decoding: try hang(client.read(exactly: 4), timeout: patience), as: UTF8.self)
    }

    /// Busy clients send their next request at once: it may be on its way when the drain begins.
    @Test(.served, arguments: [Duration.zero, .milliseconds(30)]) func aBusyClientLearnsOfTheEndByItsNextAnswer(
        _ time: Duration
    ) throws {
        try serve { _ in .later(after(time).map { Response("done") }.asPromise()) }
        let clients = try (0..<5).map { _ in try connected() }
        for client in clients {
            client.write(Self.get).cauterize()
            expect(try answer(client).hasSuffix("done"))
        }
        let drained = listener.drain(deadline: .seconds(20))
        hang(after(.milliseconds(50)))
        for client in clients { client.write(Self.get).cauterize() }
        for client in clients {
            let answer = try answer(client)
            expect(answer.contains("Connection: close\r\n") && answer.hasSuffix("done"), "\(answer)")
            expectEqual(try hang(client.receive(), timeout: patience), [])
            client.close()
        }
        expectEqual(try hang(drained.asPromise(), timeout: patience).aborted, 0)
    }

    /// A client that has been silent for a while is not about to send a request.
    @Test(.served, arguments: [10, 300]) func aSilentClientIsEndedBeforeLong(_ silence: Int) throws {
        try serve { _ in .now(Response("done")) }
        let client = try connected()
        client.write(Self.get).cauterize()
        expect(try answer(client).hasSuffix("done"))
        hang(after(.milliseconds(silence)))
        let begin = EventLoop.current.now
        listener.drain(deadline: .seconds(20))
        expectEqual(try hang(client.receive(), timeout: patience), [])
        let time = begin.duration(to: EventLoop.current.now)
        expect(
            silence > 200 ? time < .milliseconds(30) : time > .milliseconds(150) && time < .milliseconds(250), "\(time)"
        )
        client.close()
    }

    /// Requests that had arrived are answered, and the last answer announces the end; later ones are not read.
    @Test(.served, arguments: [false, true]) func pipelinedRequestsThatHaveArrivedAreAnswered(streams: Bool) throws {
        var begun = 0
        try serve { _ in
            begun += 1
            let late = after(.milliseconds(20)).map { "done" }.asPromise()
            if !streams { return .later(late.map { Response($0) }) }
            return .now(.stream(length: 4) { output in late.then { output.write($0) } })
        }
        let client = try connected()
        try hang(client.write(String(repeating: Self.get, count: 5)), timeout: patience)
        try EventLoop.current.run(until: { begun == 2 })
        let drained = listener.drain(deadline: .seconds(20))
        for _ in 0..<20 {
            client.write(Self.get).cauterize()
            hang(after(.milliseconds(5)))
        }
        let all = try readToEnd(client)
        expectEqual(statuses(all).count, begun)
        expect((5...7).contains(begun), "\(begun)")
        let parts = all.components("HTTP/1.1 200").dropFirst()
        expect(parts.dropLast().allSatisfy { !$0.contains("Connection: close") })
        expect(parts.last?.contains("Connection: close") == true)
        client.close()
        expectEqual(try hang(drained.asPromise(), timeout: patience).aborted, 0)
    }

    /// A client that keeps its pipeline full gets the answers under way before the deadline.
    @Test(.served) func anEndlessPipelineEndsInOrder() throws {
        var begun = 0
        try serve { _ in
            begun += 1
            return .later(after(.milliseconds(400)).map { Response("done") }.asPromise())
        }
        let client = try connected()
        client.write(String(repeating: Self.get, count: 200)).cauterize()
        try EventLoop.current.run(until: { begun == 2 })
        let drained = listener.drain(deadline: .seconds(5))
        let all = try readToEnd(client)
        expectEqual(statuses(all).count, begun)
        expect(begun < 20 && all.hasSuffix("done"))
        client.close()
        expectEqual(try hang(drained.asPromise(), timeout: patience).aborted, 0)
    }

    /// A message every 5 ms, whose answers take 400 ms.
    @Test(.served, arguments: [false, true]) func aBusyWebSocketSaysGoodbye(waits: Bool) throws {
        var received = 0
        try serve { request in
            .now(
                .webSocket(request) { socket in
                    socket.forEach { message -> Promise<Void> in
                        received += 1
                        let answer = after(.milliseconds(400)).then { socket.send(message) }
                        if waits { return answer }
                        socket.connection.deferDrain(until: answer).catch(policy: .allErrors) { _ in }
                        return .value
                    }
                })
        }
        let client = try connected()
        try hang(client.write(WebSocketTests.handshake + "\r\n"), timeout: patience)
        _ = try hang(client.read(until: "\r\n\r\n"), timeout: patience)
        let message = WebSocketTests.frame(0x81, Array("a".utf8))
        var drained: Guarantee<DrainResult>?
        var isOver = false
        var answers = 0
        var hasClose = false
        func next() -> Promise<Void> {
            client.read(exactly: 2).then { head -> Promise<Void> in
                if head[0] == 0x88 {
                    hasClose = true
                    return client.read(exactly: Int(head[1])).then { code in
                        client.write(WebSocketTests.frame(0x88, code))
                    }
                }
                answers += 1
                return client.read(exactly: Int(head[1])).then { _ in next() }
            }
        }
        next().ensure { isOver = true }.catch(policy: .allErrors) { _ in }
        for number in 0..<2000 where !isOver {
            if number == 100 { drained = listener.drain(deadline: .seconds(5)) }
            client.write(message).catch(policy: .allErrors) { _ in }
            hang(after(.milliseconds(5)))
        }
        expect(hasClose && answers == received, "\(answers) of \(received)")
        client.close()
        expectEqual(try drained.map { try hang($0.asPromise(), timeout: patience).aborted }, 0)
    }
}
