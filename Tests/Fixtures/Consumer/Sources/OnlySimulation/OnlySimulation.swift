import Promises
import ReactorIO
import SimulatedNetwork

@main enum OnlySimulation {
    static func main() throws {
        try withSimulatedNetwork(seed: 7) { network in
            let (server, client) = (network.host("server"), network.host("client"))
            network.link(client, server).latency = .milliseconds(3) ... .milliseconds(9)
            try server.run {
                try Listener.bind("0.0.0.0:7000").serve { connection in
                    connection.forEachLine { connection.write("\($0)!\n") }
                }.cauterize()
            }
            let answer = client.run {
                connect(to: "server:7000").then { client in client.write("hello\n").then { client.readLine() } }
            }
            check(try hang(answer, timeout: .seconds(1)) == "hello!")
        }
    }
}

func check(_ condition: Bool) { precondition(condition) }
