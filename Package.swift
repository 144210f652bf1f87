// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "swift-reactor",
    products: [
        .library(name: "Reactor", targets: ["Reactor"]),
        .library(name: "Promises", targets: ["Promises"]),
        .executable(name: "echo-server", targets: ["echo-server"]),
    ],
    targets: [
        .target(name: "CLinux"),
        .target(name: "Reactor", dependencies: ["CLinux"]),
        .target(name: "Promises", dependencies: ["CLinux", "Reactor"]),
        .executableTarget(name: "echo-server", dependencies: ["CLinux", "Promises"]),
        .testTarget(name: "ReactorTests", dependencies: ["Reactor", "CLinux"]),
        .testTarget(name: "PromisesTests", dependencies: ["Promises"]),
        .testTarget(name: "DocumentationTests", dependencies: ["Promises", "Reactor"]),
        .testTarget(name: "EchoServerTests", dependencies: ["Promises", "echo-server"]),
    ],
    swiftLanguageModes: [.v6]
)
