import Promises
import Reactor
import ReactorHTTP
import Testing
import deployed_service

@Suite struct DeployedServiceTests {
    private func settings(_ environment: [String: String]) throws(InvalidSetting) -> Settings {
        try Settings { environment[$0] }
    }

    @Test func theEnvironmentSetsWhatItNames() throws {
        let standard = try settings([:])
        #expect(
            "\(standard.address)" == "127.0.0.1:8080" && standard.lameDuck == .seconds(5)
                && standard.drain == .seconds(10))
        let named = try settings(["LISTEN": "[::]:80", "LAME_DUCK": "0", "DRAIN": "2.5"])
        #expect("\(named.address)" == "[::]:80" && named.lameDuck == .zero && named.drain == .seconds(2.5))
    }

    @Test(arguments: [
        ("LISTEN", "localhost"), ("LISTEN", ""), ("LAME_DUCK", "5s"), ("LAME_DUCK", "-1"), ("DRAIN", ""),
        ("DRAIN", "nan"),
        ("DRAIN", "1e9"),
    ])
    func aValueThatIsNoneIsRefusedByName(_ name: String, _ value: String) {
        let error = #expect(throws: InvalidSetting.self) { try settings([name: value]) }
        #expect(error?.description.hasPrefix("\(name): ") == true)
    }

    @Test func afterTheStopItIsNotReadyButServesUntilTheDrain() throws {
        try withVirtualTime {
            let service = try Service(settings(["LISTEN": "127.0.0.1:0"]))
            let ended = try service.run()
            let client = HTTPClient()
            func status(_ path: String) throws -> Int {
                let response = client.fetch("http://\(service.listener.localAddress)\(path)")
                return try hang(response.then { response in response.body.bytes().map { _ in response.status.code } })
            }
            #expect(try status("/health/ready") == 200 && status("/missing") == 404)
            let began = EventLoop.current.now
            service.stop()
            hang(after(.seconds(1)))
            #expect(try status("/health/ready") == 503 && status("/health/live") == 200 && status("/") == 200)
            service.stop()  // changes nothing
            hang(after(.seconds(3.5)))
            #expect(try status("/") == 200 && ended.isPending)
            let result = try hang(ended)
            #expect(result.aborted == 0 && began.duration(to: EventLoop.current.now) < .seconds(6))
            #expect(throws: (any Error).self) { try status("/") }
        }
    }
}
