// swift-tools-version: 6.2
import PackageDescription

let libraries: [Target.Dependency] = [
    .product(name: "Promises", package: "swift-reactor"),
    .product(name: "Reactor", package: "swift-reactor"),
]

// A package of its own, so that a package that depends on the library alone builds no HTTP. It depends on nothing else:
// TLS is a closure that the program passes, and comes from the package of integrations. See docs/guides/http.md.
let package = Package(
    name: "swift-reactor-http",
    products: [
        .library(name: "ReactorHTTP", targets: ["ReactorHTTP"]),
        .library(name: "ReactorHTTPJSON", targets: ["ReactorHTTPJSON"]),
    ],
    dependencies: [
        // Named, since the name of a folder is whatever it was cloned as.
        .package(name: "swift-reactor", path: "..")
    ],
    targets: [
        .target(name: "ReactorHTTP", dependencies: libraries),
        // Apart, since it needs Foundation.
        .target(name: "ReactorHTTPJSON", dependencies: ["ReactorHTTP"] + libraries),
        .testTarget(name: "ReactorHTTPTests", dependencies: ["ReactorHTTP", "ReactorHTTPJSON"] + libraries),
        // The code of docs/guides/http.md, written by .ci/snippets.py. Nothing of it runs.
        .testTarget(name: "HTTPPagesTests", dependencies: ["ReactorHTTP", "ReactorHTTPJSON"] + libraries),
    ],
    swiftLanguageModes: [.v6]
)
