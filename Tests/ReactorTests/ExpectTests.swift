struct ExpectTests {
    @Test func reportsWhatDiffersAndWhatIsFalse() {
        let reports = Shared<[String]>([])
        let report: @Sendable (String, SourceLocation) -> Void = { message, place in
            reports.change { $0.append("\(place.line): \(message)") }
        }
        let line = #line
        FailedExpectation.$report.withValue(report) {
            expectEqual(1, 2, "unlike")
            expectEqual([1], [1])
            expect(1 > 2, "one is small")
            expect(2 > 1)
        }
        #expect(
            reports.value == [
                "\(line + 2): 1 is not equal to 2 unlike", "\(line + 4): this was expected to be true one is small",
            ])
    }
}
