// swift-tools-version: 6.2
import PackageDescription

/// The dependencies of every target here.
let libraries: [Target.Dependency] = [
    .product(name: "Promises", package: "swift-reactor"),
    .product(name: "Reactor", package: "swift-reactor"),
    .product(name: "ReactorIO", package: "swift-reactor"),
]

/// A product of a package that is fetched only with this trait.
func product(_ name: String, of package: String, for trait: String) -> Target.Dependency {
    .product(name: name, package: package, condition: .when(traits: [trait]))
}

let tls = Target.Dependency.product(name: "ReactorTLS", package: "swift-reactor")
let dispatch = Target.Dependency.product(name: "ReactorDispatch", package: "swift-reactor")
let http = Target.Dependency.product(name: "ReactorHTTP", package: "swift-reactor")
let logging = product("Logging", of: "swift-log", for: "Logging")
let metrics = product("Metrics", of: "swift-metrics", for: "Metrics")
let lifecycle = product("ServiceLifecycle", of: "swift-service-lifecycle", for: "Lifecycle")
let context = product("ServiceContextModule", of: "swift-service-context", for: "Tracing")
let nio = product("NIOCore", of: "swift-nio", for: "NIO")

// A separate package, since the library depends on no package. The dependencies below are fetched only with their
// trait. See docs/guides/integrations.md.
let package = Package(
    name: "swift-reactor-integrations",
    products: [
        .executable(name: "https-hello", targets: ["https-hello"]),
        .library(name: "ReactorLifecycle", targets: ["ReactorLifecycle"]),
        .library(name: "ReactorLogging", targets: ["ReactorLogging"]),
        .library(name: "ReactorMetrics", targets: ["ReactorMetrics"]),
        .library(name: "ReactorNIO", targets: ["ReactorNIO"]),
        .library(name: "ReactorTracing", targets: ["ReactorTracing"]),
    ],
    // Named like the products, without `Reactor`. None is on by default.
    traits: ["Lifecycle", "Logging", "Metrics", "NIO", "Tracing"],
    dependencies: [
        // Named, since a checkout's folder may have any name.
        .package(name: "swift-reactor", path: "..", traits: ["TLS"]),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-service-context", from: "1.5.1"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        .target(name: "ReactorLogging", dependencies: [logging] + libraries),
        .testTarget(name: "ReactorLoggingTests", dependencies: ["ReactorLogging", logging] + libraries),
        .target(name: "ReactorMetrics", dependencies: [metrics] + libraries),
        .testTarget(
            name: "ReactorMetricsTests",
            dependencies: ["ReactorMetrics", metrics, product("MetricsTestKit", of: "swift-metrics", for: "Metrics")]
                + libraries),
        .target(name: "ReactorLifecycle", dependencies: [lifecycle] + libraries),
        .testTarget(name: "ReactorLifecycleTests", dependencies: ["ReactorLifecycle", lifecycle, logging] + libraries),
        .target(name: "ReactorTracing", dependencies: [context] + libraries),
        .testTarget(name: "ReactorTracingTests", dependencies: ["ReactorTracing", context] + libraries),
        .target(name: "ReactorNIO", dependencies: [nio] + libraries),
        .testTarget(
            name: "ReactorNIOTests",
            dependencies: ["ReactorNIO", product("NIOPosix", of: "swift-nio", for: "NIO")] + libraries),
        // The code of docs/guides/integrations.md, which Tests/Fixtures/snippets.py writes here. It is compiled but not run.
        .testTarget(
            name: "IntegrationPagesTests",
            dependencies: [
                "ReactorLifecycle", "ReactorLogging", "ReactorMetrics", "ReactorNIO", "ReactorTracing", dispatch, tls,
                logging,
                lifecycle, context, nio,
            ] + libraries),
        // All integrations in one program, which that page shows too.
        .executableTarget(
            name: "https-hello",
            dependencies: [
                "ReactorLifecycle", "ReactorLogging", "ReactorMetrics", http, tls, logging, metrics, lifecycle,
            ] + libraries),
    ],
    swiftLanguageModes: [.v6]
)
