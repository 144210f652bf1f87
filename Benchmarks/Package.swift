// swift-tools-version: 6.2
import PackageDescription

let support = Target.Dependency.product(name: "CSupport", package: "Counted")
let workload = Target.Dependency.product(name: "Workload", package: "Counted")
let ours = Target.Dependency.product(name: "OurRows", package: "Counted")

// A separate package, so that packages that depend on the library neither fetch nor build its competitors.
//
// Each contestant's workloads are a module: in one module the optimiser would merge nearly identical functions, and one
// contestant would run the other's code.
let package = Package(
    name: "swift-reactor-benchmarks",
    dependencies: [
        // Named, since a checkout's folder may have any name.
        .package(name: "swift-reactor", path: ".."),
        .package(path: "Counted"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
    ],
    targets: [
        .target(
            name: "NIORows",
            dependencies: [
                workload,
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ]),
        .target(name: "TaskRows", dependencies: [workload]),
        .target(name: "FloorRows", dependencies: [workload]),
        .executableTarget(
            name: "empty-loop", dependencies: [.product(name: "Reactor", package: "swift-reactor")]),
        .executableTarget(
            name: "crossings",
            dependencies: [
                support,
                .product(name: "Promises", package: "swift-reactor"),
                .product(name: "Reactor", package: "swift-reactor"),
                .product(name: "ReactorIO", package: "swift-reactor"),
            ]),
        .executableTarget(
            name: "nio-echo",
            dependencies: [
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ]),
        .executableTarget(
            name: "nio-http",
            dependencies: [
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ]),
        .executableTarget(
            name: "nio-websocket",
            dependencies: [
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOWebSocket", package: "swift-nio"),
            ]),
        .executableTarget(
            name: "fetch-loop",
            dependencies: [
                .product(name: "Promises", package: "swift-reactor"),
                .product(name: "Reactor", package: "swift-reactor"),
                .product(name: "ReactorHTTP", package: "swift-reactor"),
            ]),
        .executableTarget(
            name: "ahc-fetch",
            dependencies: [
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ]),
        .executableTarget(
            name: "counts", dependencies: [workload, support, ours, "NIORows", "TaskRows", "FloorRows"]),
    ],
    swiftLanguageModes: [.v6]
)
