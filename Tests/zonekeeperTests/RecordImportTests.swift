import ArgumentParser
import Foundation
import ServiceClient
import TestSupport
import Testing

@testable import zonekeeper

@Suite("Importing records")
struct RecordImportTests {
    private static let saved = #"{"recordName":"a","recordChangeTag":"1"}"#
    private static let refused = #"{"recordName":"b","serverErrorCode":"BAD_REQUEST","reason":"no number"}"#

    private static func answer(_ records: String...) -> ScriptedAnswer {
        ScriptedAnswer(body: #"{"records":[\#(records.joined(separator: ","))]}"#)
    }

    /// Imports lines from a server that answers from a list.
    /// - Returns: what the failure says, with `FILE` for the file's path; nil where it went well.
    private func failure(of lineCount: Int, batch: Int, _ answers: [ScriptedAnswer]) async throws -> String? {
        try await TemporaryFolder.with { folder in
            let (file, token) = (folder + "/lines", folder + "/api")
            try PrivateFile.create(token, "api\n")
            try PrivateFile.create(file, (1...lineCount).map { #"{"number":\#($0)}"# + "\n" }.joined())
            return try await ScriptedServer.running({ _, earlier in answers[min(earlier, answers.count - 1)] }) {
                server in
                let command = try RecordImportCommand.parse([
                    "--url", server.url, "--container", "c", "--api-token-file", token, "--type", "T",
                    "--batch", "\(batch)", file,
                ])
                do {
                    try await command.run()
                    return nil
                } catch let failure as CommandFailure {
                    return failure.message.replacingOccurrences(of: file, with: "FILE")
                }
            }
        }
    }

    @Test("A line that is refused beside others that are saved is left out, and the import is to go on after its batch")
    func refusedBesideSaved() async throws {
        let failure = try await failure(
            of: 5, batch: 2, [Self.answer(Self.saved, Self.saved), Self.answer(Self.saved, Self.refused)])
        #expect(
            failure == """
                FILE, line 4: BAD_REQUEST: b: no number
                error: stopped: 3 records are saved, every line before line 5 among them but those above: bring these in \
                by themselves; go on with --start-line 5
                """)
    }

    @Test("Every such line is named, and where all of a batch are refused it is the one to go on from")
    func manyRefused() async throws {
        let refused = [String](repeating: Self.refused, count: 7).joined(separator: ",")
        let most = try await failure(of: 8, batch: 8, [Self.answer(Self.saved, refused)])
        #expect(most?.contains("\nerror: and 2 more, in line 7, 8\n") == true, "\(most ?? "")")
        #expect(most?.hasSuffix("go on with --start-line 9") == true, "\(most ?? "")")
        let all = try await failure(
            of: 3, batch: 2, [Self.answer(Self.saved, Self.saved), Self.answer(Self.refused)])
        #expect(
            all?.hasSuffix("2 records are saved, every line before line 3 among them; go on with --start-line 3")
                == true,
            "\(all ?? "")")
        let none = try await failure(of: 1, batch: 2, [Self.answer(Self.refused)])
        #expect(none?.hasSuffix("\nerror: stopped: nothing was saved") == true, "\(none ?? "")")
    }

    @Test("Lines of which nobody knows whether they are saved are not said to be unsaved")
    func unknownOutcome() async throws {
        let lost = ScriptedAnswer(status: 500, body: #"{"serverErrorCode":"INTERNAL_ERROR","reason":"r"}"#)
        let first = try await failure(of: 3, batch: 2, [lost])
        #expect(
            first?.hasSuffix("\nerror: stopped: lines 1 to 2 may be saved: look before you repeat them") == true,
            "\(first ?? "")")
        let second = try await failure(of: 3, batch: 2, [Self.answer(Self.saved, Self.saved), lost])
        #expect(
            second?.hasSuffix(
                "2 records are saved, every line before line 3 among them; lines 3 to 3 may be saved: look before you "
                    + "repeat them") == true, "\(second ?? "")")
    }
}
