import SimulatedNetwork

@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

struct SimulatedPair {
    let network: VirtualNetwork
    let (nearHost, farHost): (SimulatedHost, SimulatedHost)
    let near: Connection
    let far: Connection

    func cut() { network.partition(nearHost, farHost) }
    func mend() { network.heal(nearHost, farHost) }
}

func withSimulatedPair(_ options: [SocketSetting] = [], _ body: (SimulatedPair) throws -> Void) throws {
    try withSimulatedNetwork { network in
        let near = network.host("near"), far = network.host("far")
        network.link(near, far).latency = .milliseconds(1) ... .milliseconds(2)
        let listener = try far.run { try Listener.bind("0.0.0.0:7") }
        let accepting = far.run { listener.accept() }
        let client = try hang(near.run { connect(to: "far:7", options: options) })
        let pair = SimulatedPair(network: network, nearHost: near, farHost: far, near: client, far: try hang(accepting))
        try hang(pair.near.write("hello"))
        expectEqual(try hang(pair.far.receive()), Array("hello".utf8))
        try body(pair)
    }
}
