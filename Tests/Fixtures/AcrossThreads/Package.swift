// swift-tools-version: 6.2
import PackageDescription

// Code that must not compile in Swift 6 mode: each function is a mistake that would be a data race. The lines that the
// compiler must refuse have a comment with a part of its message; a test of the package checks that it refuses these
// and no others.
let package = Package(
    name: "across-threads",
    dependencies: [.package(name: "swift-reactor", path: "../../..")],
    targets: [
        .target(
            name: "AcrossThreads",
            dependencies: [
                .product(name: "Promises", package: "swift-reactor"),
                .product(name: "Reactor", package: "swift-reactor"),
            ])
    ],
    swiftLanguageModes: [.v6]
)
