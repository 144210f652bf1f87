import SimulatedNetwork
import Testing

/// Many rounds of `SoakRound`, each with its seed.
struct SoakTests {
    @Test func serversAndClientsOnANetworkThatFails() throws {
        try soak(seeds: 4, { EchoAndWebServices($0) }, { EchoAndWebClient($0, $1) })
    }

    @Test func streamsInAllWaysOnANetworkThatFails() throws {
        try soak(seeds: 6, { StreamServices($0) }, { StreamClient($0, $1) })
    }
}
