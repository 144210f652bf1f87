// swift-tools-version: 6.2
import PackageDescription

// What new users write first. `Accepted.swift` compiles in silence; above each function that an earlier version refused
// stands what the compiler said of it. `Refused.swift` does not compile: each line has a part of the compiler's message, which
// docs/guides/compiler-messages.md explains. `EightSteps.swift` holds chains that the compiler must type-check with few
// attempts. A test of the package checks all three.
let package = Package(
    name: "first-steps",
    dependencies: [.package(name: "swift-reactor", path: "../../..")],
    targets: [
        .target(
            name: "FirstSteps",
            dependencies: [
                .product(name: "Promises", package: "swift-reactor"),
                .product(name: "PromiseKitNames", package: "swift-reactor"),
                .product(name: "Reactor", package: "swift-reactor"),
                .product(name: "ReactorHTTP", package: "swift-reactor"),
            ])
    ],
    swiftLanguageModes: [.v6]
)
