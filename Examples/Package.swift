// swift-tools-version: 6.2
import PackageDescription

/// What every target here is built of.
let libraries: [Target.Dependency] = [
    .product(name: "Promises", package: "swift-reactor"),
    .product(name: "Reactor", package: "swift-reactor"),
]

let http = Target.Dependency.product(name: "ReactorHTTP", package: "swift-reactor")
let json = Target.Dependency.product(name: "ReactorHTTPJSON", package: "swift-reactor")

/// Whether http-server is built with TLS, which needs OpenSSL.
let hasTLS = Context.environment["EXAMPLES_TLS"] != nil
let tls: [Target.Dependency] = hasTLS ? [.product(name: "ReactorTLS", package: "swift-reactor")] : []

// A package of its own, so that a package that depends on the library builds none of the examples.
let package = Package(
    name: "swift-reactor-examples",
    products: [
        .executable(name: "check-addresses", targets: ["check-addresses"]),
        .executable(name: "count-lines", targets: ["count-lines"]),
        .executable(name: "http-server", targets: ["http-server"]),
        .executable(name: "json-service", targets: ["json-service"]),
        .executable(name: "kv-server", targets: ["kv-server"]),
        .executable(name: "mqtt-broker", targets: ["mqtt-broker"]),
        .executable(name: "tcp-proxy", targets: ["tcp-proxy"]),
    ],
    dependencies: [
        // Named, since the name of a folder is whatever it was cloned as.
        .package(name: "swift-reactor", path: "..", traits: hasTLS ? ["TLS"] : [])
    ],
    targets: [
        // Command lines, exit codes and the line that says where a server listens.
        .target(name: "ExampleSupport", dependencies: libraries),
        // What check-addresses does between its command line and its output, for the tests on a virtual clock.
        .target(name: "AddressChecks", dependencies: libraries),
        .testTarget(name: "AddressChecksTests", dependencies: ["AddressChecks"] + libraries),
        .executableTarget(name: "check-addresses", dependencies: ["AddressChecks", "ExampleSupport"] + libraries),
        // The program of the README.
        .executableTarget(name: "count-lines", dependencies: libraries),
        .executableTarget(
            name: "http-server",
            dependencies: ["ExampleSupport", http] + libraries + tls,
            swiftSettings: hasTLS ? [.define("TLS")] : []),
        // The code of docs/guides/json-service.md.
        .target(name: "NotesService", dependencies: [http, json] + libraries),
        .testTarget(name: "NotesServiceTests", dependencies: ["NotesService", http] + libraries),
        .executableTarget(name: "json-service", dependencies: ["NotesService", http] + libraries),
        .systemLibrary(name: "CMalloc"),
        .executableTarget(name: "kv-server", dependencies: ["CMalloc", "ExampleSupport"] + libraries),
        .executableTarget(name: "mqtt-broker", dependencies: ["ExampleSupport"] + libraries),
        .executableTarget(name: "tcp-proxy", dependencies: ["ExampleSupport"] + libraries),
    ],
    swiftLanguageModes: [.v6]
)
