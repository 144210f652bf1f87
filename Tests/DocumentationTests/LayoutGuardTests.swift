import Glibc
import TestSupport
import Testing

/// A new stored property in the class of all jobs moves every field of a promise's core. Compiles a copy of the library
/// with one, which takes a minute, so only with `THOROUGH` in the environment.
struct LayoutGuardTests {
    @Test(.enabled(if: getenv("THOROUGH") != nil)) func aNewFieldOfAJobEndsTheFirstProgramWithItsName() throws {
        let folder = Folder()
        defer { _ = try? Compiler.run(["rm", "-rf", folder.path]) }
        let build = """
            set -e
            cd "$0"
            mkdir -p Sources/probe
            for name in CLinux ReactorLibc Reactor Promises; do cp -r "$1/Sources/$name" Sources; done
            sed -i 's/    @usableFromInline package init() { link = nil }/    final var added = 0\\n&/' Sources/Reactor/Jobs/Job.swift
            grep -q 'final var added' Sources/Reactor/Jobs/Job.swift
            echo 'import Promises
            _ = Promise.value(1).map { $0 + 1 }' >Sources/probe/main.swift
            echo '// swift-tools-version: 6.2
            import PackageDescription
            let package = Package(
                name: "copy",
                targets: [
                    .target(name: "CLinux"), .target(name: "ReactorLibc"),
                    .target(name: "Reactor", dependencies: ["CLinux", "ReactorLibc"]),
                    .target(name: "Promises", dependencies: ["CLinux", "Reactor", "ReactorLibc"]),
                    .executableTarget(name: "probe", dependencies: ["Promises"]),
                ], swiftLanguageModes: [.v6])' >Package.swift
            swift build --product probe >build.log 2>&1 || { tail -n 20 build.log; exit 1; }
            SWIFT_BACKTRACE=enable=no .build/debug/probe
            """
        let output = try Compiler.run(["sh", "-c", build, folder.path, Repository.root])
        expect(output.contains("swift-reactor: PromiseCore.payload does not begin at byte 48"), "\(output)")
    }
}
