// swift-tools-version: 6.2
// Made by .ci/snippets.py from docs/guides/integrations.md; do not edit.
// swift-format-ignore-file
import PackageDescription

let package = Package(
    name: "hello",
    dependencies: [
        .package(name: "swift-reactor", path: "../swift-reactor", traits: ["TLS"]),
        .package(
            name: "swift-reactor-integrations", path: "../swift-reactor/Integrations",
            traits: ["Lifecycle", "Logging", "Metrics"]),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        .executableTarget(
            name: "hello",
            dependencies: [
                .product(name: "Promises", package: "swift-reactor"),
                .product(name: "Reactor", package: "swift-reactor"),
                .product(name: "ReactorHTTP", package: "swift-reactor"),
                .product(name: "ReactorTLS", package: "swift-reactor"),
                .product(name: "ReactorLifecycle", package: "swift-reactor-integrations"),
                .product(name: "ReactorLogging", package: "swift-reactor-integrations"),
                .product(name: "ReactorMetrics", package: "swift-reactor-integrations"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ])
    ],
    swiftLanguageModes: [.v6]
)
