// swift-tools-version: 6.2
// Made by .ci/snippets.py from README.md; do not edit.
// swift-format-ignore-file
import PackageDescription

let package = Package(
    name: "my-server",
    dependencies: [.package(name: "swift-reactor", path: "../swift-reactor")],
    targets: [
        .executableTarget(
            name: "my-server",
            dependencies: [
                .product(name: "Promises", package: "swift-reactor"),
                .product(name: "Reactor", package: "swift-reactor"),
            ])
    ]
)
