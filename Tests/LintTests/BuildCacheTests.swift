import Foundation
import TestSupport
import Testing

/// `choose_build_folder` and `build` of `scripts/lib.sh`, with a stand-in for the compiler.
@Suite("The cache of built dependencies")
struct BuildCacheTests {
    private let folder = FileManager.default.temporaryDirectory.path + "/zonekeeper-cache-" + UUID().uuidString
    private var home: String { folder + "/home" }

    private static let compiler = """
        #!/usr/bin/env bash
        if [ "$1" = --version ]; then echo "Swift version $COMPILER"; exit; fi
        mkdir -p "$3/debug"
        if [ ! -e "$3/debug/dependency.o" ]; then echo compiled; echo object >"$3/debug/dependency.o"; fi
        if ! grep -qs database "$3/build.db"; then echo database >"$3/build.db"; echo 'no database'; fi
        exit "$STATUS"
        """
    private static let script = """
        set -euo pipefail
        . "$LIBRARY"
        choose_build_folder
        echo "in $build_folder"
        build --product everything
        """

    init() throws {
        let library = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "scripts/lib.sh").path
        try FileManager.default.createDirectory(atPath: folder + "/clone", withIntermediateDirectories: true)
        try FileManager.default.createDirectory(atPath: folder + "/bin", withIntermediateDirectories: true)
        try FileManager.default.copyItem(atPath: library, toPath: folder + "/lib.sh")
        try Self.compiler.write(toFile: folder + "/bin/swift", atomically: true, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder + "/bin/swift")
        try depend(on: "one")
    }

    /// Lets the clone depend on one package. A fresh clone has no `Package.resolved`, so that plays no part.
    private func depend(on package: String) throws {
        try ".package(url: \"\(package)\")\n".write(
            toFile: folder + "/clone/Package.swift", atomically: true, encoding: .utf8)
    }

    /// Runs the script in the clone.
    /// - Returns: what it said, and what it ended with.
    private func run(_ changes: [String: String] = [:], holding lock: String? = nil) throws -> (String, Int32) {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        let variables = [
            "PATH": "\(folder)/bin:\(path)", "HOME": home, "LIBRARY": folder + "/lib.sh", "CI": "true",
            "COMPILER": "6.3", "STATUS": "0",
        ].merging(changes) { $1 }.map { "\($0)=\($1)" }
        let words = (lock.map { ["flock", $0] } ?? []) + ["bash", "-c", Self.script]
        let program = try FinishedProgram(["env", "-i", "-C", folder + "/clone"] + variables + words)
        return (program.text, program.status)
    }

    /// The folders of the cache.
    private func caches() throws -> [String] {
        let root = home + "/.cache/zonekeeper/build"
        return try FileManager.default.contentsOfDirectory(atPath: root).filter { !$0.hasSuffix(".lock") }
            .map { "\(root)/\($0)" }.sorted()
    }

    @Test("it is used in continuous integration, or where it is asked for")
    func asked() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        for variables in [["CI": ""], ["ZONEKEEPER_BUILD_CACHE": "0"], ["HOME": ""], ["HOME": "/proc"]] {
            #expect(try run(variables).0.contains("in \(folder)/clone/.build\n"), "\(variables)")
        }
        #expect(try run(["CI": "", "ZONEKEEPER_BUILD_CACHE": "1"]).0.contains("in \(home)/.cache/zonekeeper/build/"))
    }

    @Test("dependencies stay built, also after a build that failed")
    func warm() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        #expect(try run().0.contains("compiled"))
        #expect(try !run().0.contains("compiled"))
        #expect(try run(["STATUS": "1"]).1 == 1)
        #expect(try !run().0.contains("compiled"))
    }

    @Test("what is damaged, or was left by a build that was cut short, is built from the start")
    func damaged() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        _ = try run()
        let cache = try #require(try caches().first)
        try "nonsense".write(toFile: cache + "/debug/dependency.o", atomically: true, encoding: .utf8)
        #expect(try run().0.contains("compiled"))
        try FileManager.default.removeItem(atPath: cache + "/sums")
        #expect(try run().0.contains("compiled"))
        // The database changes with every use, so its copy counts.
        try "nonsense".write(toFile: cache + "/build.db", atomically: true, encoding: .utf8)
        let restored = try run().0
        #expect(!restored.contains("compiled") && !restored.contains("no database"), "\(restored)")
    }

    @Test("two scripts at once do not share it")
    func locked() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        _ = try run()
        let cache = try #require(try caches().first)
        #expect(try run(holding: cache + ".lock").0.contains("in \(folder)/clone/.build\n"))
        #expect(try run().0.contains("in \(cache)\n"))
    }

    @Test("another compiler or other dependencies have another folder, and only the newest two are kept")
    func bounded() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        for version in ["6.3", "6.4", "6.5", "6.6"] {
            #expect(try run(["COMPILER": version]).0.contains("compiled"))
            #expect(try caches().count <= 2)
        }
        try depend(on: "another")
        #expect(try run(["COMPILER": "6.6"]).0.contains("compiled"))
    }
}
