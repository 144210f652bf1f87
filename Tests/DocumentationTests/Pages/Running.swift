// Made by .ci/snippets.py from the documentation; do not edit.
// swift-format-ignore-file

extension Snippet {
    static let all: [Snippet] = [
    ]
}
