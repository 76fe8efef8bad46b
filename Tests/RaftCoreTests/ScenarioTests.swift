import Foundation
import Testing

/// Every file in `Scenarios/`. `REWRITE_SCENARIOS=1 swift test` writes what happened in place of what was expected;
/// read the difference before it is kept.
@Suite("Scenarios")
struct ScenarioTests {
    private static var folder: URL {
        URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Scenarios")
    }

    static var names: [String] {
        let files = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return files.filter { $0.hasSuffix(".txt") }.sorted()
    }

    @Test("There are scenarios")
    func notEmpty() { #expect(Self.names.count >= 8) }

    @Test("A scenario happens as it is written", arguments: names)
    func scenario(name: String) throws {
        let file = Self.folder.appending(path: name)
        let expected = try String(contentsOf: file, encoding: .utf8)
        let actual = try Scenario.rewritten(expected)
        if ProcessInfo.processInfo.environment["REWRITE_SCENARIOS"] == "1" {
            try actual.write(to: file, atomically: true, encoding: .utf8)
            return
        }
        let pairs = zip(expected.split(separator: "\n"), actual.split(separator: "\n"))
        if let (line, happened) = pairs.first(where: { $0 != $1 }) {
            Issue.record("\(name): expected \"\(line)\", but \"\(happened)\" happened")
        }
        #expect(expected == actual, "\(name) has a different length; see REWRITE_SCENARIOS")
    }
}
