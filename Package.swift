// swift-tools-version: 6.2
import PackageDescription

/// What this run of the tests does without, to save compiling it: names of test targets, and of folders in PromisesTests.
/// `.ci/run` uses it where one look is enough.
let leftOut = Set((Context.environment["TESTS_LEFT_OUT"] ?? "").split(separator: " ").map(String.init))
let folders = [
    "APlus", "Awaiting", "Combinators", "Connecting", "Core", "Datagrams", "Diagnostics", "Dispatch", "Filters",
    "Frames", "Model", "Operators", "Pooling", "Serving", "Soak", "Streams", "System", "Time",
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
        .testTarget(name: "ReactorTests", dependencies: ["Reactor", "CLinux", "TestSupport"]),
        // Optimised file by file, since as a whole it takes one processor six minutes, and two processors no less.
        .testTarget(
            name: "PromisesTests", dependencies: ["Promises", "TestSupport"], exclude: folders.filter(leftOut.contains),
            swiftSettings: [
                .unsafeFlags(
                    ["-no-whole-module-optimization", "-enable-batch-mode"], .when(configuration: .release))
            ]),
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
    ].filter { !leftOut.contains($0.name) } + counted,
    swiftLanguageModes: [.v6]
)
