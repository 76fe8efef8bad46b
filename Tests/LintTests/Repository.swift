import Foundation

/// The files of this repository.
enum Repository {
    static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    static func text(_ file: String) throws -> String {
        try String(contentsOf: root.appending(path: file), encoding: .utf8)
    }

    /// Files of a kind below folders, sorted, without those that builds make.
    static func files(_ suffix: String, in folders: [String]) throws -> [String] {
        try folders.flatMap { folder in
            try FileManager.default.subpathsOfDirectory(atPath: root.appending(path: folder).path)
                .filter { $0.hasSuffix(suffix) }.sorted().map { "\(folder)/\($0)" }
        }
    }

    /// Swift files of Sources and Tests, taken apart.
    static let swift: [(file: String, source: SourceText)] = {
        do {
            return try files(".swift", in: ["Sources", "Tests"]).map { ($0, SourceText(try text($0))) }
        } catch { preconditionFailure("the sources cannot be read: \(error)") }
    }()

    /// The target of a file: the folder below Sources or Tests.
    static func target(of file: String) -> String { String(file.split(separator: "/")[1]) }
}
