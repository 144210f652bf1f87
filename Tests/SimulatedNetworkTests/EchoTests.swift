import Promises
import SimulatedNetwork
import TestSupport
import Testing

struct EchoTests {
    @Test func aServerAndItsClient() throws {
        try withSimulatedNetwork { network in
            let server = network.host("server"), client = network.host("client")
            server.run {
                let listener = try! Listener.bind("0.0.0.0:7000")
                listener.serve { connection in connection.forEachLine { connection.write("\($0)!\n") } }.cauterize()
            }
            let answer = client.run {
                connect(to: "server:7000").then { connection in
                    connection.write("hello\n").then { connection.readLine() }
                }
            }
            expectEqual(try hang(answer, timeout: .seconds(5)), "hello!")
        }
    }
}
