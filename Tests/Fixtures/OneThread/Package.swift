// swift-tools-version: 6.2
import PackageDescription

// What code on one thread looks like in Swift 6 mode: not a word of concurrency in it. A test of the package compiles
// it and expects silence; `swift run` here runs it.
let package = Package(
    name: "one-thread",
    dependencies: [.package(name: "swift-reactor", path: "../../..")],
    targets: [
        .executableTarget(
            name: "OneThread",
            dependencies: [
                .product(name: "Promises", package: "swift-reactor"),
                .product(name: "Reactor", package: "swift-reactor"),
            ])
    ],
    swiftLanguageModes: [.v6]
)
