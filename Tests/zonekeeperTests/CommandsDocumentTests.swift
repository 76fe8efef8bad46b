import ArgumentParser
import Foundation
import RecordModel
import Testing

@testable import zonekeeper

/// `docs/commands.md` lists the commands: after a noun, up to a semicolon, the verbs of that noun.
@Suite("The document of commands")
struct CommandsDocumentTests {
    private static func names(of command: any ParsableCommand.Type, after nouns: String = "") -> [String] {
        guard command.configuration.shouldDisplay else { return [] }
        let name = nouns + command._commandName
        let verbs = command.configuration.subcommands
        return verbs.isEmpty ? [name] : verbs.flatMap { names(of: $0, after: name + " ") }
    }

    private static func listed(in document: String) -> [String] {
        document.split(separator: "\n").filter { $0.hasPrefix("| `") && !$0.hasPrefix("| `ZONEKEEPER_") }.flatMap {
            row in
            row.split(separator: "|")[0].split(separator: ";").flatMap { part in
                var noun = ""
                return part.split(separator: "`").enumerated().filter { $0.offset % 2 == 1 }.map { _, words in
                    guard let space = words.lastIndex(of: " ") else { return noun + words }
                    noun = String(words[...space])
                    return String(words)
                }
            }
        }
    }

    private static func document(_ path: String) throws -> String {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        return try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }

    @Test(
        "nodes in examples have this build's version and feature level",
        arguments: ["README.md", "docs/getting-started.md"])
    func levels(path: String) throws {
        let nodes = try Self.document(path).split(separator: "\n").filter { $0.contains("  ready  ") }
        #expect(nodes.count == 3)
        for node in nodes {
            let words = node.split(separator: " ").dropFirst(5).prefix(2).map(String.init)
            #expect(words == [Zonekeeper.configuration.version, "\(FeatureLevel.supported.upperBound)"])
        }
    }

    @Test("every command is listed, and nothing else")
    func commands() throws {
        let document = try Self.document("docs/commands.md")
        let commands = Zonekeeper.configuration.subcommands.flatMap { Self.names(of: $0) }
        #expect(commands.count > 100 && Self.listed(in: document).sorted() == commands.sorted())
    }
}
