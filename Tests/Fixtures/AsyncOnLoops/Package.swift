// swift-tools-version: 6.2
import PackageDescription

// Actors, async functions and the main actor together with promises, in Swift 6 mode. A test of the package compiles it
// and expects no diagnostics; `swift run` here runs it.
let package = Package(
    name: "async-on-loops",
    dependencies: [.package(name: "swift-reactor", path: "../../..")],
    targets: [
        .executableTarget(
            name: "AsyncOnLoops",
            dependencies: [
                .product(name: "Promises", package: "swift-reactor"),
                .product(name: "Reactor", package: "swift-reactor"),
            ])
    ],
    swiftLanguageModes: [.v6]
)
