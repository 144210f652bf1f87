// swift-tools-version: 6.2
import PackageDescription

/// What every target here is built of.
let libraries: [Target.Dependency] = [
    .product(name: "Promises", package: "swift-reactor"),
    .product(name: "Reactor", package: "swift-reactor"),
]

// A package of its own, so that a package that depends on the library alone fetches none of the packages below and needs
// no OpenSSL. See docs/guides/integrations.md.
let package = Package(
    name: "swift-reactor-integrations",
    products: [
        .library(name: "ReactorTLS", targets: ["ReactorTLS"])
    ],
    dependencies: [
        // Named, since the name of a folder is whatever it was cloned as.
        .package(name: "swift-reactor", path: "..")
    ],
    targets: [
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .target(name: "ReactorTLS", dependencies: ["COpenSSL"] + libraries),
        .testTarget(name: "ReactorTLSTests", dependencies: ["COpenSSL", "ReactorTLS"] + libraries),
    ],
    swiftLanguageModes: [.v6]
)
