// swift-tools-version: 6.2
import PackageDescription

/// What this run of the tests does without, to save compiling it: names of test targets, and of folders in PromisesTests.
/// `.ci/run` uses it where one look is enough.
let leftOut = Set((Context.environment["TESTS_LEFT_OUT"] ?? "").split(separator: " ").map(String.init))

/// The tests of Promises in several modules, by folders: one large module takes the compiler longer than its parts.
let promisesTests: [(name: String, folders: [String])] = [
    ("CoreTests", ["Core", "Time", "Diagnostics"]),
    ("OperatorsTests", ["Operators", "Combinators", "Dispatch", "APlus"]),
    ("StreamsTests", ["Streams", "Connecting", "Datagrams", "System"]),
    ("ServingTests", ["Serving", "Awaiting", "Frames", "Filters", "Pooling"]), ("StressTests", ["Model", "Soak"]),
]

/// The programs of `Benchmarks` whose instructions `.ci/counts.py` counts. They are part of this package only for it, so that
/// they are linked with the release build that `.ci/run` has made already.
let counted: [Target] =
    Context.environment["COUNTED"] == nil
    ? []
    : [
        .target(name: "CSupport", path: "Benchmarks/Sources/CSupport"),
        .target(name: "Workload", dependencies: ["CSupport"], path: "Benchmarks/Sources/Workload"),
        .target(
            name: "OurRows", dependencies: ["Workload", "Promises", "Reactor"], path: "Benchmarks/Sources/OurRows"),
        .executableTarget(
            name: "counted-rows", dependencies: ["OurRows", "Workload", "Promises"],
            path: "Benchmarks/Sources/counted-rows"),
        .executableTarget(
            name: "chunk-echo", dependencies: ["Promises", "Reactor"], path: "Benchmarks/Sources/chunk-echo"),
    ]

let package = Package(
    name: "swift-reactor",
    products: [
        .library(name: "Reactor", targets: ["Reactor"]),
        .library(name: "Promises", targets: ["Promises"]),
        .executable(name: "echo-server", targets: ["echo-server"]),
    ],
    targets: [
        .target(name: "CLinux"),
        .target(name: "Reactor", dependencies: ["CLinux"]),
        .target(name: "Promises", dependencies: ["CLinux", "Reactor"]),
        .executableTarget(name: "echo-server", dependencies: ["CLinux", "Promises"]),
        // Threads, gates, counters and the like, for all tests.
        .target(name: "TestSupport", path: "Tests/TestSupport"),
        .testTarget(
            name: "PromisesTestSupport", dependencies: ["Promises", "TestSupport"], path: "Tests/PromisesTests/Support"),
        .testTarget(name: "ReactorTests", dependencies: ["Reactor", "CLinux", "TestSupport"]),
        // The snippets stand for the code of users: nothing in them may take the type checker longer than a second.
        .testTarget(
            name: "DocumentationTests", dependencies: ["Promises", "Reactor"],
            swiftSettings: [
                .unsafeFlags([
                    "-Xfrontend", "-warn-long-function-bodies=1000",
                    "-Xfrontend", "-warn-long-expression-type-checking=1000",
                ])
            ]),
        .testTarget(name: "EchoServerTests", dependencies: ["Promises", "echo-server", "TestSupport"]),
    ].filter { !leftOut.contains($0.name) }
        + promisesTests.compactMap { name, folders in
            let compiled = folders.filter { !leftOut.contains($0) }
            if compiled.isEmpty || leftOut.contains(name) { return nil }
            return .testTarget(
                name: name, dependencies: ["Promises", "TestSupport", "PromisesTestSupport"],
                path: "Tests/PromisesTests",
                exclude: ["Support"] + promisesTests.flatMap(\.folders).filter { !compiled.contains($0) })
        } + counted,
    swiftLanguageModes: [.v6]
)
