// swift-tools-version: 6.2
// Made by .ci/snippets.py from docs/start/first-promises.md; do not edit.
// swift-format-ignore-file
import PackageDescription

let package = Package(
    name: "tutorial",
    dependencies: [.package(name: "swift-reactor", path: "../swift-reactor")],
    targets: [
        .executableTarget(name: "tutorial", dependencies: [.product(name: "Promises", package: "swift-reactor")])
    ]
)
