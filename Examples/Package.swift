// swift-tools-version: 6.2
import PackageDescription

/// The dependencies of every target here.
let libraries: [Target.Dependency] = [
    .product(name: "Promises", package: "swift-reactor"),
    .product(name: "Reactor", package: "swift-reactor"),
    .product(name: "ReactorIO", package: "swift-reactor"),
]

let console = Target.Dependency.product(name: "ReactorConsole", package: "swift-reactor")
let http = Target.Dependency.product(name: "ReactorHTTP", package: "swift-reactor")
let simulation = Target.Dependency.product(name: "SimulatedNetwork", package: "swift-reactor")
let json = Target.Dependency.product(name: "ReactorHTTPJSON", package: "swift-reactor")

/// True if http-server is built with TLS, which needs OpenSSL.
let hasTLS = Context.environment["EXAMPLES_TLS"] != nil
let tls: [Target.Dependency] = hasTLS ? [.product(name: "ReactorTLS", package: "swift-reactor")] : []

// A separate package, so that packages that depend on the library build none of the examples.
let package = Package(
    name: "swift-reactor-examples",
    products: [
        .executable(name: "check-addresses", targets: ["check-addresses"]),
        .executable(name: "count-lines", targets: ["count-lines"]),
        .executable(name: "deployed-service", targets: ["deployed-service"]),
        .executable(name: "http-server", targets: ["http-server"]),
        .executable(name: "json-service", targets: ["json-service"]),
        .executable(name: "kv-server", targets: ["kv-server"]),
        .executable(name: "mqtt-broker", targets: ["mqtt-broker"]),
        .executable(name: "tcp-proxy", targets: ["tcp-proxy"]),
    ],
    dependencies: [
        // Named, since a checkout's folder may have any name.
        .package(name: "swift-reactor", path: "..", traits: hasTLS ? ["TLS"] : [])
    ],
    targets: [
        // Command lines, exit codes and the line with a server's address.
        .target(name: "ExampleSupport", dependencies: libraries),
        // The work of check-addresses without its command line and output, for tests on a virtual clock.
        .target(name: "AddressChecks", dependencies: libraries),
        .testTarget(name: "AddressChecksTests", dependencies: ["AddressChecks"] + libraries),
        .executableTarget(name: "check-addresses", dependencies: ["AddressChecks", "ExampleSupport"] + libraries),
        // The program of the README.
        .executableTarget(name: "count-lines", dependencies: libraries),
        // The program of docs/guides/deployment.md.
        .executableTarget(name: "deployed-service", dependencies: [http] + libraries),
        .testTarget(name: "DeployedServiceTests", dependencies: ["deployed-service", http] + libraries),
        .executableTarget(
            name: "http-server",
            dependencies: ["ExampleSupport", console, http] + libraries + tls,
            swiftSettings: hasTLS ? [.define("TLS")] : []),
        // The code of docs/guides/json-service.md.
        .target(name: "NotesService", dependencies: [http, json] + libraries),
        .testTarget(name: "NotesServiceTests", dependencies: ["NotesService", http] + libraries),
        .executableTarget(name: "json-service", dependencies: ["NotesService", http] + libraries),
        .systemLibrary(name: "CMalloc"),
        .executableTarget(name: "kv-server", dependencies: ["CMalloc", "ExampleSupport", console] + libraries),
        .executableTarget(name: "mqtt-broker", dependencies: ["ExampleSupport"] + libraries),
        .executableTarget(name: "tcp-proxy", dependencies: ["ExampleSupport"] + libraries),
        // Servers on a network that fails.
        .testTarget(
            name: "SoakTests", dependencies: ["http-server", "kv-server", "mqtt-broker", http, simulation] + libraries),
    ],
    swiftLanguageModes: [.v6]
)
