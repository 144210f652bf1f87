// swift-tools-version: 6.2
import PackageDescription

// Single-threaded code in Swift 6 mode, without any concurrency annotation. A test of the package compiles it and
// expects no diagnostics; `swift run` here runs it.
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
