// swift-tools-version: 6.2
import PackageDescription

let promisesTests: [Target.Dependency] = ["Promises", "TestSupport", "PromisesTestSupport"]
let ioTests: [Target.Dependency] = promisesTests + ["ReactorIO", "ReactorIOTestSupport"]
/// Builds without TLS do not look for OpenSSL.
let openSSL = Target.Dependency.target(name: "COpenSSL", condition: .when(traits: ["TLS"]))

let package = Package(
    name: "swift-reactor",
    products: [
        .library(name: "Reactor", targets: ["Reactor"]),
        .library(name: "Promises", targets: ["Promises"]),
        .library(name: "ReactorIO", targets: ["ReactorIO"]),
        .library(name: "PromiseKitNames", targets: ["PromiseKitNames"]),
        .library(name: "ReactorHTTP", targets: ["ReactorHTTP"]),
        .library(name: "ReactorHTTPJSON", targets: ["ReactorHTTPJSON"]),
        .library(name: "ReactorConsole", targets: ["ReactorConsole"]),
        .library(name: "ReactorTLS", targets: ["ReactorTLS"]),
        .library(name: "ReactorDispatch", targets: ["ReactorDispatch"]),
        .library(name: "SimulatedNetwork", targets: ["SimulatedNetwork"]),
        .executable(name: "echo-server", targets: ["echo-server"]),
    ],
    // Off by default.
    traits: [.trait(name: "TLS", description: "ReactorTLS, which needs OpenSSL 3 (apt-get install libssl-dev)")],
    targets: [
        .target(name: "CLinux"),
        .target(name: "ReactorLibc"),
        .target(name: "Reactor", dependencies: ["CLinux", "ReactorLibc"]),
        .target(name: "Promises", dependencies: ["CLinux", "Reactor", "ReactorLibc"]),
        // A `ByteReader` is lent: its functions declare the lifetime dependencies of their results.
        .target(
            name: "ReactorIO", dependencies: ["CLinux", "Promises", "Reactor", "ReactorLibc"],
            swiftSettings: [.enableExperimentalFeature("Lifetimes")]),
        // For migration: PromiseKit's names for functions that have other names here.
        .target(name: "PromiseKitNames", dependencies: ["Promises", "Reactor"]),
        .target(name: "ReactorHTTP", dependencies: ["Promises", "Reactor", "ReactorIO", "ReactorLibc"]),
        .target(
            name: "ReactorConsole", dependencies: ["Promises", "Reactor", "ReactorHTTP", "ReactorIO", "ReactorLibc"],
            resources: [.embedInCode("page.html")]),
        // Separate, since it needs Foundation.
        .target(name: "ReactorHTTPJSON", dependencies: ["Promises", "Reactor", "ReactorHTTP", "ReactorIO"]),
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .target(name: "ReactorTLS", dependencies: ["Promises", "Reactor", "ReactorIO", "ReactorLibc", openSSL]),
        // Separate, since it needs Dispatch and CoreFoundation.
        .target(name: "ReactorDispatch", dependencies: ["Promises", "Reactor"]),
        // Hosts and links inside a test: the loop's system calls, simulated.
        .target(name: "SimulatedNetwork", dependencies: ["CLinux", "Promises", "Reactor", "ReactorIO", "ReactorLibc"]),
        .executableTarget(name: "echo-server", dependencies: ["CLinux", "Promises", "ReactorIO", "ReactorLibc"]),
        // Threads, gates, counters and so on, for all tests.
        .target(name: "TestSupport", path: "Tests/TestSupport"),
        .testTarget(name: "ReactorTests", dependencies: ["Reactor", "CLinux", "TestSupport"]),
        // The tests of Promises are several modules, since one large module takes longer to compile than its parts.
        .target(
            name: "PromisesTestSupport", dependencies: ["Promises", "Reactor", "TestSupport"],
            path: "Tests/PromisesTestSupport"),
        .target(
            name: "ReactorIOTestSupport", dependencies: promisesTests + ["Reactor", "ReactorIO"],
            path: "Tests/ReactorIOTestSupport"),
        .testTarget(name: "CoreTests", dependencies: promisesTests),
        .testTarget(name: "OperatorsTests", dependencies: promisesTests + ["PromiseKitNames"]),
        .testTarget(name: "StreamsTests", dependencies: ioTests + ["SimulatedNetwork"]),
        .testTarget(name: "ServingTests", dependencies: ioTests),
        .testTarget(name: "StressTests", dependencies: promisesTests),
        .testTarget(
            name: "ReactorHTTPTests",
            dependencies: [
                "Promises", "PromisesTestSupport", "Reactor", "ReactorHTTP", "ReactorHTTPJSON", "ReactorIO",
                "ReactorIOTestSupport", "SimulatedNetwork", "TestSupport",
            ]),
        .testTarget(
            name: "ReactorConsoleTests",
            dependencies: ioTests + ["Reactor", "ReactorConsole", "ReactorHTTP"]),
        // Empty without the trait.
        .testTarget(
            name: "ReactorTLSTests",
            dependencies: ioTests + [openSSL, "ReactorHTTP", "ReactorTLS", "SimulatedNetwork"],
            swiftSettings: [.define("STREAMS_OVER_TLS")]),
        .testTarget(
            name: "ReactorDispatchTests", dependencies: ["Promises", "Reactor", "ReactorDispatch", "ReactorIO"]),
        .testTarget(
            name: "SimulatedNetworkTests",
            dependencies: [
                "CLinux", "Promises", "Reactor", "ReactorHTTP", "ReactorIO", "SimulatedNetwork", "TestSupport",
                "echo-server",
            ]),
        // It compiles the blocks of the documentation against these modules.
        .testTarget(
            name: "DocumentationTests",
            dependencies: [
                "Promises", "PromiseKitNames", "Reactor", "ReactorConsole", "ReactorDispatch", "ReactorHTTP",
                "ReactorHTTPJSON", "ReactorIO", "SimulatedNetwork", "TestSupport",
            ]),
        .testTarget(name: "EchoServerTests", dependencies: ioTests + ["echo-server"]),
    ],
    swiftLanguageModes: [.v6]
)

// To compile only some tests, for example two targets and their dependencies, from this folder:
//     REACTOR_TESTS="CoreTests StressTests" swift test --scratch-path .build-core
// REACTOR_TESTS_WITHOUT="CoreTests/Time" omits a folder. See CONTRIBUTING. Both are ignored where this package is another
// one's dependency: then the command runs in another folder.
if let tests = Context.environment["REACTOR_TESTS"]?.split(separator: " ").map(String.init),
    Context.environment["PWD"] == Context.packageDirectory
{
    let without = Context.environment["REACTOR_TESTS_WITHOUT"]?.split(separator: " ") ?? []
    var used = Set<String>()
    func use(_ name: String) {
        guard used.insert(name).inserted else { return }
        guard let target = package.targets.first(where: { $0.name == name }) else {
            fatalError("REACTOR_TESTS: there is no target \(name)")
        }
        for case .targetItem(let name, _) in target.dependencies { use(name) }
        for case .byNameItem(let name, _) in target.dependencies { use(name) }
    }
    tests.forEach(use)
    package.products = []
    package.targets.removeAll { !used.contains($0.name) }
    for target in package.targets {
        let folders = without.filter { $0.hasPrefix("\(target.name)/") }
        target.exclude += folders.map { String($0.dropFirst(target.name.count + 1)) }
    }
}
