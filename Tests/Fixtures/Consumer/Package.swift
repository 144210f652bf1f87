// swift-tools-version: 6.2
import PackageDescription

// A package of a client, with a program for each product. `.ci/run consumer` builds it elsewhere, against a tagged
// clone, and runs the programs.

let environment = Context.environment
let url = environment["REACTOR_URL"] ?? "https://example.org/swift-reactor"
let hasTLS = environment["REACTOR_TLS"] != nil

func program(_ name: String, _ products: String..., settings: [SwiftSetting] = []) -> Target {
    .executableTarget(
        name: name, dependencies: products.map { .product(name: $0, package: "swift-reactor") }, swiftSettings: settings
    )
}

let programs = [
    program("OnlyReactor", "Reactor"),
    program("OnlyPromises", "Promises"),
    program("OnlyReactorIO", "Promises", "ReactorIO"),
    program("OnlyNames", "PromiseKitNames", "Promises"),
    program("OnlyHTTP", "Promises", "ReactorHTTP", "ReactorIO"),
    program("OnlyConsole", "ReactorConsole"),
    program("OnlyJSON", "Promises", "ReactorHTTP", "ReactorHTTPJSON", "ReactorIO"),
    program("OnlyDispatch", "Promises", "ReactorDispatch"),
    program("OnlySimulation", "Promises", "ReactorIO", "SimulatedNetwork"),
    program("MainActorByDefault", "Promises", settings: [.defaultIsolation(MainActor.self)]),
]
let tls = [
    program("OnlyTLS", "Promises", "Reactor", "ReactorIO", "ReactorTLS"),
    program(
        "Together", "Promises", "PromiseKitNames", "Reactor", "ReactorDispatch", "ReactorHTTP", "ReactorHTTPJSON",
        "ReactorIO", "ReactorTLS",
        settings: [.define("WITH_TLS")]),
]
let withoutTLS = [
    program(
        "Together", "Promises", "PromiseKitNames", "Reactor", "ReactorDispatch", "ReactorHTTP", "ReactorHTTPJSON",
        "ReactorIO")
]
// Does not compile.
let forgotten = [program("WithoutTheTrait", "Promises", "ReactorIO", "ReactorTLS")]

let package = Package(
    name: "consumer",
    dependencies: [
        hasTLS ? .package(url: url, from: "0.1.0", traits: ["TLS"]) : .package(url: url, from: "0.1.0")
    ],
    targets: programs + (hasTLS ? tls : withoutTLS) + (environment["REACTOR_FORGOTTEN"] != nil ? forgotten : []),
    swiftLanguageModes: [.v6]
)
