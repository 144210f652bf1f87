// swift-tools-version: 6.2
// Made by .ci/snippets.py from docs/start/first-client.md; do not edit.
// swift-format-ignore-file
import PackageDescription

let package = Package(
    name: "tutorial",
    dependencies: [.package(name: "swift-reactor", path: "../swift-reactor")],
    targets: [
        .target(
            name: "TutorialServer",
            dependencies: [
                .product(name: "Promises", package: "swift-reactor"),
                .product(name: "Reactor", package: "swift-reactor"),
            ]),
        .executableTarget(name: "tutorial", dependencies: ["TutorialServer"]),
        .executableTarget(name: "ask", dependencies: ["TutorialServer"]),
        .testTarget(name: "TutorialServerTests", dependencies: ["TutorialServer"]),
    ]
)
