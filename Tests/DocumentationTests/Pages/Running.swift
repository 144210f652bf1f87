// Made by .ci/snippets.py from the documentation; do not edit.
// swift-format-ignore-file

extension Snippet {
    static let all: [Snippet] = [
        Snippet("docs/promises.md: A promise is already running (promises2)", asserts: 3, Snippets.promises2),
        Snippet("docs/promises.md: What runs when, and where (promises3)", asserts: 1, Snippets.promises3),
        Snippet("docs/promises.md: What runs when, and where (promises4)", asserts: 1, Snippets.promises4),
        Snippet("docs/promises.md: Making one (promises5)", asserts: 4, Snippets.promises5),
        Snippet("docs/promises.md: Making one (promises6)", asserts: 1, Snippets.promises6),
        Snippet("docs/promises.md: Guarantees (promises7)", asserts: 2, Snippets.promises7),
        Snippet("docs/promises.md: Chains (promises8)", asserts: 5, Snippets.promises8),
        Snippet("docs/promises.md: Chains (promises9)", asserts: 1, Snippets.promises9),
        Snippet("docs/promises.md: Errors (promises10)", asserts: 1, Snippets.promises10),
        Snippet("docs/promises.md: Errors (promises11)", asserts: 1, Snippets.promises11),
        Snippet("docs/promises.md: Errors (promises12)", asserts: 1, Snippets.promises12),
        Snippet("docs/promises.md: Cleaning up (promises13)", asserts: 1, Snippets.promises13),
        Snippet("docs/promises.md: Sequences (promises14)", asserts: 5, Snippets.promises14),
        Snippet("docs/promises.md: Sequences (promises15)", asserts: 5, Snippets.promises15),
        Snippet("docs/promises.md: Several at once (promises16)", asserts: 2, Snippets.promises16),
        Snippet("docs/promises.md: Several at once (promises17)", asserts: 5, Snippets.promises17),
        Snippet("docs/promises.md: Several at once (promises18)", asserts: 3, Snippets.promises18),
        Snippet("docs/promises.md: One after another (promises19)", asserts: 5, Snippets.promises19),
        Snippet("docs/promises.md: Time (promises20)", asserts: 5, Snippets.promises20),
        Snippet("docs/promises.md: Time (promises21)", asserts: 3, Snippets.promises21),
        Snippet("docs/promises.md: Cancellation (promises22)", asserts: 2, Snippets.promises22),
        Snippet("docs/promises.md: Asking and waiting (promises23)", asserts: 3, Snippets.promises23),
        Snippet("docs/promises.md: Other threads (promises24)", asserts: 1, Snippets.promises24),
        Snippet("docs/promises.md: Other threads (promises25)", asserts: 1, Snippets.promises25),
        Snippet("docs/promises.md: Lazy promises (promises26)", asserts: 2, Snippets.promises26),
        Snippet("docs/promises.md: async and await (promises27)", asserts: 1, Snippets.promises27),
        Snippet("docs/promises.md: A thenable of your own (promises29)", asserts: 1, Snippets.promises29),
        Snippet("docs/promises.md: Testing (promises30)", asserts: 1, Snippets.promises30),
    ]
}
