// swift-tools-version: 6.2
import PackageDescription

let promisesTests: [Target.Dependency] = ["Promises", "TestSupport", "PromisesTestSupport"]

let package = Package(
    name: "swift-reactor",
    products: [
        .library(name: "Reactor", targets: ["Reactor"]),
        .library(name: "Promises", targets: ["Promises"]),
        .library(name: "PromiseKitNames", targets: ["PromiseKitNames"]),
        .executable(name: "echo-server", targets: ["echo-server"]),
    ],
    targets: [
        .target(name: "CLinux"),
        .target(name: "Reactor", dependencies: ["CLinux"]),
        // A `ByteReader` is lent: its functions say on what the lifetime of their results depends.
        .target(
            name: "Promises", dependencies: ["CLinux", "Reactor"],
            swiftSettings: [.enableExperimentalFeature("Lifetimes")]),
        // For those who migrate: names of PromiseKit for which the library has others.
        .target(name: "PromiseKitNames", dependencies: ["Promises", "Reactor"]),
        .executableTarget(name: "echo-server", dependencies: ["CLinux", "Promises"]),
        // Threads, gates, counters and the like, for all tests.
        .target(name: "TestSupport", path: "Tests/TestSupport"),
        .testTarget(name: "ReactorTests", dependencies: ["Reactor", "CLinux", "TestSupport"]),
        // The tests of Promises are several modules, since the compiler takes longer for one large module than for its parts.
        .testTarget(name: "PromisesTestSupport", dependencies: ["Promises", "TestSupport"]),
        .testTarget(name: "CoreTests", dependencies: promisesTests),
        .testTarget(name: "OperatorsTests", dependencies: promisesTests + ["PromiseKitNames"]),
        .testTarget(name: "StreamsTests", dependencies: promisesTests),
        .testTarget(name: "ServingTests", dependencies: promisesTests),
        .testTarget(name: "StressTests", dependencies: promisesTests),
        .testTarget(
            name: "DocumentationTests", dependencies: ["Promises", "PromiseKitNames", "Reactor", "TestSupport"]),
        .testTarget(name: "EchoServerTests", dependencies: ["Promises", "echo-server", "TestSupport"]),
    ],
    swiftLanguageModes: [.v6]
)
