// swift-tools-version: 6.2
import PackageDescription

// Servers with a planted fault each, which the console must show: for `.ci/run console`, and for the pictures of
// docs/guides/console.md.
let package = Package(
    name: "faulty-servers",
    dependencies: [.package(name: "swift-reactor", path: "../../..")],
    targets: [
        .executableTarget(
            name: "FaultyServer",
            dependencies: ["Promises", "Reactor", "ReactorConsole", "ReactorHTTP", "ReactorIO"].map {
                .product(name: $0, package: "swift-reactor")
            })
    ],
    swiftLanguageModes: [.v6]
)
