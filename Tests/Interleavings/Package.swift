// swift-tools-version: 6.2
import PackageDescription

// The library, whose sources are those of the root, by links. Its `import Synchronization` means `Model`.
let seam: [SwiftSetting] = [
    .unsafeFlags([
        "-module-alias", "Synchronization=Model", "-enforce-exclusivity=unchecked", "-assert-config", "Debug",
        "-num-threads", "4",
    ])
]

let package = Package(
    name: "interleavings",
    targets: [
        .target(name: "CLinux"),
        .target(name: "ModelThreads"),
        .target(name: "ModelRuns"),
        .target(
            name: "Model", dependencies: ["ModelThreads"],
            swiftSettings: [.enableExperimentalFeature("RawLayout"), .enableExperimentalFeature("BuiltinModule")]),
        .target(name: "Reactor", dependencies: ["CLinux", "Model"], swiftSettings: seam),
        // Without what is about connections, more than half: its threads share only the parts below it.
        .target(
            name: "Promises", dependencies: ["CLinux", "Model", "Reactor"],
            sources: ["Seam.swift", "Library/Buffers/LinkedOrder.swift"]
                + ["Awaiting", "Combinators", "Core", "Diagnostics", "Operators", "Outcomes", "Time"].map {
                    "Library/\($0)"
                },
            swiftSettings: seam + [.enableExperimentalFeature("Lifetimes")]),
        .target(name: "Exploring", dependencies: ["ModelRuns", "ModelThreads"]),
        .executableTarget(
            name: "interleavings",
            dependencies: ["Exploring", "Model", "ModelRuns", "ModelThreads", "Promises", "Reactor"],
            swiftSettings: [.swiftLanguageMode(.v5)]),
    ],
    swiftLanguageModes: [.v6]
)
