import Foundation
import Testing

@Suite("House rules that a test can hold")
struct LintTests {
    /// Swift files below a folder of the package, sorted.
    private static func swiftFiles(in folder: String) throws -> [String] {
        try Repository.files(".swift", in: [folder])
    }

    private static func text(_ file: String) throws -> String { try Repository.text(file) }

    private static func imports(of file: String) throws -> Set<String> {
        let lines = try text(file).split(separator: "\n")
        return Set(
            lines.compactMap { line in
                let words = line.split(separator: " ")
                guard let position = words.firstIndex(of: "import"), position <= 2, !line.hasPrefix("//"),
                    !line.hasPrefix(" ")
                else { return nil }
                return words.last.map(String.init)
            })
    }

    @Test(
        "pure targets import nothing that does I/O",
        arguments: [
            ("Wire", []), ("RaftCore", ["Wire"]), ("RecordModel", ["Wire"]),
            ("Authorization", ["RecordModel", "Wire"]),
        ] as [(String, Set<String>)])
    func pureTargets(target: String, allowed: Set<String>) throws {
        for file in try Self.swiftFiles(in: "Sources/\(target)") {
            let others = try Self.imports(of: file).subtracting(allowed)
            #expect(others.isEmpty, "\(file) imports \(others.sorted())")
        }
    }

    @Test("targets depend downwards only")
    func layers() throws {
        let layers: [[String]] = [
            ["Wire", "ConsoleFiles", "Telemetry"], ["RaftCore", "RecordModel", "CoreLocation", "OSLog"],
            ["Authorization", "Certificates", "ServiceClient", "os"],
            ["Storage", "PeerTransport", "UbiquitousKeyValueStore"],
            ["RecordStore", "KeyValueStore", "Directory", "CloudKit"], ["Cluster"], ["Admission"], ["Service"],
            ["WebServices"],
            ["zonekeeper"],
        ]
        for (level, targets) in layers.enumerated() {
            let above = Set(layers[level...].flatMap(\.self))
            for target in targets {
                for file in try Self.swiftFiles(in: "Sources/\(target)") {
                    let wrong = try Self.imports(of: file).intersection(above)
                    #expect(wrong.isEmpty, "\(file) imports \(wrong.sorted())")
                }
            }
        }
        let known = Set(layers.flatMap(\.self))
        let folders = try FileManager.default.contentsOfDirectory(
            atPath: Repository.root.appending(path: "Sources").path)
        #expect(Set(folders) == known, "every target has its place in the layers")
    }

    @Test("what is above the service knows nothing of Raft, and nothing below it knows HTTP")
    func service() throws {
        for file in try Self.swiftFiles(in: "Sources/WebServices") {
            let raft = try Self.imports(of: file).intersection(["Cluster", "RaftCore", "Storage"])
            #expect(raft.isEmpty, "\(file) imports \(raft.sorted())")
        }
        for file in try Self.swiftFiles(in: "Sources/Service") {
            let http = try Self.imports(of: file).filter { $0.contains("HTTP") || $0.contains("Hummingbird") }
            #expect(http.isEmpty, "\(file) imports \(http.sorted())")
        }
    }

    @Test("shipped code leaves no work for later unsaid")
    func nothingLeft() throws {
        for file in try Self.swiftFiles(in: "Sources") {
            let text = try Self.text(file)
            for word in ["TO" + "DO", "FIX" + "ME"] { #expect(!text.contains(word), "\(file) has a \(word)") }
        }
    }

    @Test("unchecked promises to the compiler are justified beside them")
    func justified() throws {
        for file in try Self.swiftFiles(in: "Sources") {
            let lines = try Self.text(file).split(separator: "\n", omittingEmptySubsequences: false)
            for (number, line) in lines.enumerated()
            where line.contains("@unchecked Sendable") || line.contains("nonisolated(unsafe)") {
                let near = lines[max(0, number - 4)...min(lines.count - 1, number + 4)]
                #expect(near.contains { $0.contains("//") }, "\(file):\(number + 1) says no reason")
            }
        }
    }

    @Test("every target has a design document")
    func designDocuments() throws {
        for target in try FileManager.default.contentsOfDirectory(
            atPath: Repository.root.appending(path: "Sources").path)
        where target != "zonekeeper" {
            let path = Repository.root.appending(path: "Sources/\(target)/DESIGN.md").path
            let size = (try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int) ?? 0
            #expect(size > 200, "Sources/\(target)/DESIGN.md says too little")
        }
    }

    @Test("each file of the console is embedded, and no other is named")
    func consoleFiles() throws {
        let folder = Repository.root.appending(path: "Sources/ConsoleFiles/Web")
        let files = try FileManager.default.subpathsOfDirectory(atPath: folder.path)
            .filter { $0.contains(".") }.sorted()
        let list = try Self.text("Sources/ConsoleFiles/files.h")
        let entries = list.matches(of: #/FILE\("([^"]+)"\)\n#embed "Web/([^"]+)" limit\(BYTES_MAX\)/#)
        #expect(entries.map { $0.1 == $0.2 ? String($0.1) : "\($0.0)" }.sorted() == files)
    }

    @Test("documents name files that exist")
    func documentsNameFiles() throws {
        let documents =
            try ["README.md", "CHANGELOG.md", "ARCHITECTURE.md", "CONTRIBUTING.md"]
            + Repository.files(".md", in: ["docs"])
        let sources = try Repository.files(".swift", in: ["Sources", "Tests", "Benchmarks"])
        let names = Set(sources.compactMap { $0.split(separator: "/").last.map(String.init) })
        for document in documents {
            let text = try Self.text(document)
            for word in text.split(whereSeparator: { " \n`()[]|,;:\"'".contains($0) }) where !word.contains("*") {
                let path = String(word).trimmingCharacters(in: CharacterSet(charactersIn: "."))
                if ["scripts/", "Sources/", "Tests/", "docs/", "Benchmarks/"].contains(where: { path.hasPrefix($0) }) {
                    #expect(Self.exists(path), "\(document) names \(path), which is not there")
                } else if path.hasSuffix(".swift"), path != "GRDB.swift", path.count > 6, !path.hasPrefix("/") {
                    // Of a target, or by its name alone. GRDB.swift is a package.
                    let isThere =
                        path.contains("/")
                        ? Self.exists("Sources/\(path)") : names.contains(path) || Self.exists(path)
                    #expect(isThere, "\(document) names \(path), which is not there")
                }
            }
        }
    }

    private static func exists(_ path: String) -> Bool {
        FileManager.default.fileExists(atPath: Repository.root.appending(path: path).path)
    }
}
