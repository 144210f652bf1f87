// swift-tools-version: 6.2
import PackageDescription

// The library, whose sources are those of the root, by links. Its `import Synchronization` means `Model`.
let seam: [SwiftSetting] = [
    .unsafeFlags([
        "-module-alias", "Synchronization=Model", "-enforce-exclusivity=unchecked", "-assert-config", "Debug",
        "-num-threads", "4",
    ])
]

// The functions whose calls are steps: see wrapped.c.
let wrapped = [
    "clinux_is_sanitized", "clock_gettime", "epoll_wait", "pthread_cond_broadcast", "pthread_cond_init",
    "pthread_cond_signal", "pthread_cond_wait", "pthread_create", "pthread_detach", "pthread_join",
    "pthread_mutex_init", "pthread_mutex_lock", "pthread_mutex_unlock", "sched_yield", "swift_allocObject",
    "swift_isUniquelyReferenced_nonNull_native", "swift_release", "swift_release_n", "swift_retain",
    "swift_retainCount", "swift_retain_n", "write",
]

let package = Package(
    name: "interleavings",
    targets: [
        .target(name: "CLinux"),
        .target(name: "ReactorLibc"),
        .target(name: "ModelThreads"),
        .target(
            name: "Model", dependencies: ["ModelThreads"],
            swiftSettings: [.enableExperimentalFeature("RawLayout"), .enableExperimentalFeature("BuiltinModule")]),
        .target(name: "Reactor", dependencies: ["CLinux", "Model", "ReactorLibc"], swiftSettings: seam),
        // Without ReactorIO, whose threads share only these parts.
        .target(
            name: "Promises", dependencies: ["CLinux", "Model", "Reactor", "ReactorLibc"], swiftSettings: seam),
        .target(name: "Exploring", dependencies: ["ModelThreads"]),
        .executableTarget(
            name: "interleavings",
            dependencies: ["Exploring", "Model", "ModelThreads", "Promises", "Reactor"],
            swiftSettings: [.swiftLanguageMode(.v5)],
            linkerSettings: [.unsafeFlags(wrapped.flatMap { ["-Xlinker", "--wrap=\($0)"] })]),
    ],
    swiftLanguageModes: [.v6]
)
