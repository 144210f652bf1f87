// swift-tools-version: 6.2
// Made by .ci/snippets.py from README.md; do not edit.
// swift-format-ignore-file
import PackageDescription

let package = Package(
    name: "my-server",
    dependencies: [.package(url: "https://example.org/swift-reactor", from: "0.1.0")],
    targets: [
        .executableTarget(
            name: "my-server",
            dependencies: [
                .product(name: "Promises", package: "swift-reactor"),
                .product(name: "Reactor", package: "swift-reactor"),
            ])
    ]
)
