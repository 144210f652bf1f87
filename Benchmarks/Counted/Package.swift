// swift-tools-version: 6.2
import PackageDescription

/// The dependencies of every target here.
let libraries: [Target.Dependency] = [
    .product(name: "Promises", package: "swift-reactor"),
    .product(name: "Reactor", package: "swift-reactor"),
    .product(name: "ReactorIO", package: "swift-reactor"),
]

// Only the library's own workloads, not its competitors': `.ci/run counts` builds them without a network.
let package = Package(
    name: "swift-reactor-counted",
    products: [
        .library(name: "CSupport", targets: ["CSupport"]),
        .library(name: "Workload", targets: ["Workload"]),
        .library(name: "OurRows", targets: ["OurRows"]),
        .executable(name: "byte-rows", targets: ["byte-rows"]),
        .executable(name: "chunk-echo", targets: ["chunk-echo"]),
        .executable(name: "counted-rows", targets: ["counted-rows"]),
        .executable(name: "loops-echo", targets: ["loops-echo"]),
    ],
    dependencies: [
        // Named, since a checkout's folder may have any name.
        .package(name: "swift-reactor", path: "../..")
    ],
    targets: [
        .target(name: "CSupport"),
        .target(name: "Workload", dependencies: ["CSupport"]),
        .target(
            name: "OurRows",
            dependencies: ["Workload", .product(name: "ReactorHTTP", package: "swift-reactor")] + libraries),
        // `.ci/counts.py --debug` compiles it alone.
        .executableTarget(
            name: "byte-rows", dependencies: [.product(name: "ReactorHTTP", package: "swift-reactor")] + libraries),
        .executableTarget(name: "chunk-echo", dependencies: libraries),
        .executableTarget(name: "loops-echo", dependencies: libraries),
        .executableTarget(name: "counted-rows", dependencies: ["OurRows", "Workload"] + libraries),
    ],
    swiftLanguageModes: [.v6]
)
