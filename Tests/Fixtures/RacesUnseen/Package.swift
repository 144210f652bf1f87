// swift-tools-version: 6.2
import PackageDescription

// Mistakes that the compiler does not diagnose. A test of the package expects no diagnostics, so that a compiler which
// begins to see one of them is noticed; then the function moves to AcrossThreads. The page docs/guides/async.md lists
// them. Not to be run.
let package = Package(
    name: "races-unseen",
    dependencies: [.package(name: "swift-reactor", path: "../../..")],
    targets: [
        .target(
            name: "RacesUnseen",
            dependencies: [
                .product(name: "Promises", package: "swift-reactor"),
                .product(name: "Reactor", package: "swift-reactor"),
            ])
    ],
    swiftLanguageModes: [.v6]
)
