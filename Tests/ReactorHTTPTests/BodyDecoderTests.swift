@testable import ReactorHTTP

struct BodyDecoderTests {
    /// An array that moved with each chunk would take time proportional to the square of its length.
    @Test func gatheredChunksMoveSeldom() throws {
        var decoder = BodyDecoder(.chunked, maxHead: 0, isOfResponse: false)
        (decoder.limit, decoder.whole) = (.max, [])
        let chunk = Array("10\r\n0123456789abcdef\r\n".utf8)
        var capacities: Set<Int> = []
        for _ in 0..<1000 {
            _ = try decoder.decode(chunk.span.bytes)
            capacities.insert(decoder.whole?.capacity ?? 0)
        }
        expectEqual(decoder.whole?.count, 16_000)
        expect(capacities.count < 40, "\(capacities.count) moves")
    }
}
