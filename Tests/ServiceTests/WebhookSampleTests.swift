import Crypto
import Foundation
import TestSupport
import Testing

/// The code of `docs/webhooks.md` that verifies signatures: the Swift as it is here, Python and JavaScript as they are
/// in the document, where the machine has them.
@Suite("Webhooks: the samples of the documentation")
struct WebhookSampleTests {
    /// What a receiver may be sent.
    private struct Case: Codable {
        var body = #"{"id":"a-1"}"#
        var id = "a-1"
        var timestamp = "1790000000"
        var signatures = WebhookSampleTests.signature
        var secret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
        var now = 1_790_000_000.0

        func with(_ change: (inout Case) -> Void) -> Case {
            var other = self
            change(&other)
            return other
        }
    }

    private static let document = URL(filePath: #filePath).appending(path: "../../../docs/webhooks.md").standardized
    private static let signature = "v1,nGFLkbGWUiKefo1BajYPwY+DfKclkwRc0gwG9bzTOkA="

    /// Signed with the secret in the last five minutes.
    private static let genuine = [
        Case(), Case().with { $0.signatures = "v1,AAAA \(signature)" }, Case().with { $0.now += 299 },
        Case().with { $0.now -= 299 },
    ]
    private static let others = [
        Case().with { $0.now += 300 }, Case().with { $0.now -= 300 }, Case().with { $0.body = #"{"id":"a-2"}"# },
        Case().with { $0.id = "a-2" }, Case().with { $0.timestamp = "1790000001" },
        Case().with { $0.timestamp = "soon" }, Case().with { $0.timestamp = "" },
        Case().with { $0.secret = "whsec_AAEC" }, Case().with { $0.signatures = "" },
        Case().with { $0.signatures = "v1,?" }, Case().with { $0.signatures = "v1,\u{e9}" },
        Case().with { $0.signatures = String(signature.dropFirst(3)) },
    ]

    /// The document's code in a language.
    private func code(_ language: String) throws -> String {
        let text = try String(contentsOf: Self.document, encoding: .utf8)
        let block = text.components(separatedBy: "```\(language)\n").dropFirst().first
        return try #require(block?.components(separatedBy: "```").first, "there is no code in \(language)")
    }

    @Test("the document has the Swift that is tested here")
    func same() throws {
        let own = try String(contentsOf: URL(filePath: #filePath), encoding: .utf8)
        let sample = try #require(own.components(separatedBy: "// The sample.\n\n").last)
        #expect(try code("swift") == "import Crypto\nimport Foundation\n\n" + sample)
    }

    @Test("Swift takes what is genuine, and nothing else")
    func swift() {
        func check(_ sent: Case) -> Bool {
            isGenuine(
                body: Data(sent.body.utf8), id: sent.id, timestamp: sent.timestamp, signatures: sent.signatures,
                secret: sent.secret, now: Date(timeIntervalSince1970: sent.now))
        }
        #expect(Self.genuine.allSatisfy(check))
        #expect(!Self.others.contains(where: check) && !check(Case().with { $0.secret = "whsec_?" }))
    }

    @Test("Python takes what is genuine, and nothing else", .enabled(if: hasProgram("python3"), "no python3 in PATH"))
    func python() throws {
        let answers = """
            import json, sys
            names = ["id", "timestamp", "signatures", "secret", "now"]
            with open(sys.argv[1]) as file:
                cases = json.load(file)
            print(json.dumps([is_genuine(c["body"].encode(), *(c[name] for name in names)) for c in cases]))

            """
        try check("python3", "sample.py", code("python") + "\n" + answers)
    }

    @Test("JavaScript takes what is genuine, and nothing else", .enabled(if: hasProgram("node"), "no node in PATH"))
    func javaScript() throws {
        let answers = """
            import { readFileSync } from "node:fs";
            const names = ["id", "timestamp", "signatures", "secret", "now"];
            const cases = JSON.parse(readFileSync(process.argv[2]));
            const answer = (c) => isGenuine(Buffer.from(c.body), ...names.map((name) => c[name]));
            console.log(JSON.stringify(cases.map(answer)));

            """
        try check("node", "sample.mjs", code("javascript") + "\n" + answers)
    }

    /// Has a program answer for all cases.
    private func check(_ program: String, _ name: String, _ code: String) throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "webhook-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let (source, cases) = (folder.appending(path: name), folder.appending(path: "cases.json"))
        try Data(code.utf8).write(to: source)
        try JSONEncoder().encode(Self.genuine + Self.others).write(to: cases)
        let answer = try FinishedProgram([program, source.path, cases.path])
        #expect(answer.status == 0, "\(answer.errors)")
        let expected = Self.genuine.map { _ in true } + Self.others.map { _ in false }
        #expect(try JSONDecoder().decode([Bool].self, from: Data(answer.output.utf8)) == expected)
    }
}

/// Whether a program is in `PATH`.
private func hasProgram(_ name: String) -> Bool {
    (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").contains {
        FileManager.default.isExecutableFile(atPath: "\($0)/\(name)")
    }
}

// The sample.

/// - Parameter secret: as `webhook create` printed it, `whsec_...`.
func isGenuine(
    body: Data, id: String, timestamp: String, signatures: String, secret: String, now: Date = Date()
) -> Bool {
    guard let key = Data(base64Encoded: String(secret.dropFirst("whsec_".count))),
        let seconds = Double(timestamp), abs(now.timeIntervalSince1970 - seconds) < 300
    else { return false }
    let signed = Data("\(id).\(timestamp).".utf8) + body
    return signatures.split(separator: " ").contains { signature in
        guard signature.hasPrefix("v1,"), let code = Data(base64Encoded: String(signature.dropFirst(3))) else {
            return false
        }
        return HMAC<SHA256>.isValidAuthenticationCode(code, authenticating: signed, using: SymmetricKey(data: key))
    }
}
