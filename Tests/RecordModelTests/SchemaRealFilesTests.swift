import Foundation
import Testing

@testable import RecordModel

/// Exports and hand-written schemas of public projects. They are no part of this repository (most carry licences of
/// their own), so this suite looks for them beside it and says so when they are absent.
@Suite("Schema language: files found in the wild")
struct SchemaRealFilesTests {
    private static let folder = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("../shared/reference/real-schemas").standardizedFileURL

    private static let files: [URL] = {
        let all = try? FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
        return (all ?? []).filter { $0.pathExtension == "ckdb" }.sorted { $0.path < $1.path }
    }()

    @Test("Every file parses, prints and parses again as the same schema")
    func roundTrip() throws {
        if Self.files.isEmpty { print("SKIPPED: no schemas at \(Self.folder.path)") }
        for file in Self.files {
            let text = String(decoding: try Data(contentsOf: file), as: UTF8.self)
            let schema = try SchemaParser.parse(text)
            #expect(!schema.types.isEmpty, "\(file.lastPathComponent)")
            let printed = SchemaPrinter.print(schema)
            let again = try SchemaParser.parse(printed)
            #expect(again == schema, "\(file.lastPathComponent)")
            #expect(SchemaPrinter.print(again) == printed, "\(file.lastPathComponent)")
            #expect(SchemaPlan(from: schema, to: again).isEmpty, "\(file.lastPathComponent)")
        }
    }

    @Test("Every file imports into a new container, and deploys from there to production")
    func imports() throws {
        for file in Self.files {
            let schema = try SchemaParser.parse(String(decoding: try Data(contentsOf: file), as: UTF8.self))
            for mode in [SchemaPlan.Mode.replace, .additive] {
                let plan = SchemaPlan(from: .initial, to: schema, mode: mode, protecting: .initial)
                #expect(plan.refusals.isEmpty, "\(file.lastPathComponent)")
                let development = try #require(plan.applied(to: .initial), "\(file.lastPathComponent)")
                #expect(development.type(named: "Users") != nil && development.types.count >= schema.types.count)
                let again = SchemaPlan(from: development, to: schema, mode: mode, protecting: .initial)
                #expect(again.isEmpty, "\(file.lastPathComponent)")
                let deploy = SchemaPlan(from: .initial, to: development, mode: .additive)
                let production = try #require(deploy.applied(to: .initial), "\(file.lastPathComponent)")
                // A deploy takes nothing away, such as the grants that a file leaves out.
                #expect(SchemaPlan(from: production, to: development, mode: .additive).changes.isEmpty)
                #expect(production.types.map(\.name) == development.types.map(\.name))
            }
        }
    }

    @Test("What CloudKit's exporter wrote is printed back byte for byte")
    func exports() throws {
        // The others were written or changed by hand: other order, comments, missing system fields.
        let exports = [
            "ajsutton__moolah-native__schema-prod-baseline", "boxed__Done-and-done__schema",
            "frasergraham__HexRain__schema",
            "frasergraham__Hexfall__schema", "pagoda8__Walking-Buddy__cloudkit-schema",
        ]
        for file in Self.files where exports.contains(file.deletingPathExtension().lastPathComponent) {
            let text = String(decoding: try Data(contentsOf: file), as: UTF8.self)
            #expect(SchemaPrinter.print(try SchemaParser.parse(text)) == text, "\(file.lastPathComponent)")
        }
    }

    @Test("Mutations of every file are parsed or refused, and never trap")
    func mutations() throws {
        var random = SchemaRandom(seed: 7)
        var refused = 0
        for file in Self.files {
            let text = Array(try Data(contentsOf: file))
            for _ in 0..<20 {
                var mutant = text
                SchemaFuzzTests.mutate(&mutant, using: &random)
                do throws(SchemaError) {
                    _ = try SchemaParser.parse(String(decoding: mutant, as: UTF8.self))
                } catch {
                    refused += 1
                }
            }
        }
        #expect(Self.files.isEmpty || refused > 0)
    }
}
