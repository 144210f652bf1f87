@_exported import Testing

// A test that uses these instead of `#expect` compiles in 60 % of the time: the macro's expansion is type-checked at each of some 5,000 places.

/// Expects `left` to equal `right`, and shows both where they differ.
package func expectEqual<Value: Equatable>(
    _ left: Value, _ right: Value, _ comment: @autoclosure () -> String = "",
    fileID: String = #fileID, filePath: String = #filePath, line: Int = #line, column: Int = #column
) {
    if left == right { return }
    let message = "\(String(reflecting: left)) is not equal to \(String(reflecting: right)) \(comment())"
    report(message, SourceLocation(fileID: fileID, filePath: filePath, line: line, column: column))
}

/// Expects `condition` to be true.
package func expect(
    _ condition: Bool, _ comment: @autoclosure () -> String = "",
    fileID: String = #fileID, filePath: String = #filePath, line: Int = #line, column: Int = #column
) {
    if condition { return }
    let message = "this was expected to be true \(comment())"
    report(message, SourceLocation(fileID: fileID, filePath: filePath, line: line, column: column))
}

private func report(_ message: String, _ place: SourceLocation) {
    Issue.record(Comment(rawValue: message), sourceLocation: place)
}
