import SimulatedNetwork
import Testing

/// The servers of the examples on a simulated network, many rounds with a seed each: see `SoakRound`.
@Suite struct SoakTests {
    @Test func theServersOfTheExamplesOnANetworkThatFails() throws {
        try soak(seeds: 100, { ExampleServices($0) }, { ExampleClient($0, $1) })
    }
}
