import ArgumentParser
import Crypto
import Foundation
import RecordModel
import ServiceClient
import TestSupport
import Testing

@testable import zonekeeper

/// The command that server keys are made with elsewhere.
enum OpenSSL {
    static let samplePrivateKey = P256.Signing.PrivateKey().pemRepresentation

    @discardableResult
    static func run(_ arguments: String...) throws -> FinishedProgram { try FinishedProgram(["openssl"] + arguments) }

    static func mode(of path: String) throws -> Int? {
        (try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber)?.intValue
    }
}

@Suite("Server-to-server keys")
struct ServerKeyTests {
    private func write(_ bytes: some Sequence<UInt8>, _ path: String) {
        #expect(FileManager.default.createFile(atPath: path, contents: Data(bytes)))
    }

    @Test("OpenSSL verifies what is signed, with a key that it made, and not what was changed")
    func signature() async throws {
        try await TemporaryFolder.with { folder in
            let (privatePath, publicPath) = (folder + "/key.pem", folder + "/public.pem")
            try OpenSSL.run("ecparam", "-name", "prime256v1", "-genkey", "-out", privatePath)
            try OpenSSL.run("ec", "-in", privatePath, "-pubout", "-out", publicPath)
            let key = try ServerKeyFile(path: privatePath, id: "0123")
            let target = "/database/1/iCloud.c/development/public/records/query?x=a%20b"
            let body = Array(#"{"query":{}}"#.utf8)
            let headers = try key.headers(target: target, body: body, time: 1_453_760_143_999)
            let named = Dictionary(uniqueKeysWithValues: headers.map { ($0.name, $0.value) })
            #expect(named["X-Apple-CloudKit-Request-KeyID"] == "0123")
            let date = try #require(named["X-Apple-CloudKit-Request-ISO8601Date"])
            #expect(date == "2016-01-25T22:15:43.999Z")
            let signature = try #require(
                Data(base64Encoded: named["X-Apple-CloudKit-Request-SignatureV1"] ?? ""))
            write(signature, folder + "/signature")
            // Put together here, not by the code under test.
            write(body, folder + "/body")
            try OpenSSL.run("dgst", "-sha256", "-binary", "-out", folder + "/digest", folder + "/body")
            let digest = try #require(FileManager.default.contents(atPath: folder + "/digest")).base64EncodedString()
            for (message, isRight) in [
                ("\(date):\(digest):\(target)", true), ("\(date):\(digest):\(target)&y=1", false),
                ("2016-01-25T22:15:43.998Z:\(digest):\(target)", false),
            ] {
                write(message.utf8, folder + "/message")
                let status = try OpenSSL.run(
                    "dgst", "-sha256", "-verify", publicPath, "-signature", folder + "/signature", folder + "/message"
                ).status
                #expect((status == 0) == isRight, "\(message)")
            }
        }
    }

    @Test("A key is read with the id beside it, which an option overrides; the old form with a line is still read")
    func file() async throws {
        try await TemporaryFolder.with { folder in
            let (key, path) = (P256.Signing.PrivateKey(), folder + "/key.pem")
            try PrivateFile.create(path, key.pemRepresentation + "\n")
            #expect(throws: ServiceClientError.self) { try ServerKeyFile(path: path, id: nil) }
            try ServerKeyFile.writeID("abcd", besideKey: path)
            #expect(throws: ServiceClientError.self) { try ServerKeyFile.writeID("other", besideKey: path) }
            let read = try ServerKeyFile(path: path, id: nil)
            #expect(read.id == "abcd")
            #expect(read.key.rawRepresentation == key.rawRepresentation)
            #expect(try ServerKeyFile(path: path, id: "other").id == "other")

            let old = folder + "/old.pem"
            try PrivateFile.create(old, "\(key.pemRepresentation)\nKey-ID: ef01\n")
            #expect(try ServerKeyFile(path: old, id: nil).id == "ef01")
            for text in ["", "two words", "a\r\nX-Header: b"] {
                try PrivateFile.replace(ServerKeyFile.idPath(of: old), with: text)
                let error = #expect(throws: ServiceClientError.self) { try ServerKeyFile(path: old, id: nil) }
                #expect(error?.message.contains("old.pem.id holds no key id") == true)
            }
        }
    }

    @Test("What is no usable key is refused without telling what is in the file")
    func refused() async throws {
        let path = "k.pem"
        func message(_ text: String, id: String? = "1") -> String? {
            #expect(throws: ServiceClientError.self) { try ServerKeyFile(text: text, id: id, path: path) }?.message
        }
        #expect(message("hello")?.contains("holds no private key") == true)
        #expect(message(OpenSSL.samplePrivateKey, id: nil)?.contains("--key-id") == true)
        let locked = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB\n-----END ENCRYPTED PRIVATE KEY-----"
        #expect(message(locked)?.contains("locked with a password") == true)
        let other = P384.Signing.PrivateKey().pemRepresentation
        #expect(message(other) == "k.pem holds no private key of the curve P-256 (prime256v1)")
        let cut = String(OpenSSL.samplePrivateKey.prefix(80)) + "\n-----END PRIVATE KEY-----"
        #expect(message(cut) == "k.pem holds no private key of the curve P-256 (prime256v1)")
    }

    /// Runs a command against a server, with an administrator's token in the folder.
    private func run(_ arguments: [String], _ server: ScriptedServer, _ folder: String) async throws {
        let secret = folder + "/admin.token"
        if !Paths.exists(secret) { try PrivateFile.create(secret, String(repeating: "s", count: 64) + "\n") }
        let command = try Zonekeeper.parseAsRoot(
            arguments + ["--url", server.url, "--container", "c", "--admin-token-file", secret])
        var asynchronous = try #require(command as? any AsyncParsableCommand)
        try await asynchronous.run()
    }

    @Test("A pair is made here: the private key goes to a new file of its owner's, the public key to the cluster")
    func create() async throws {
        let id = String(repeating: "0f", count: 32)
        try await TemporaryFolder.with { folder in
            try await ScriptedServer.running({ _, _ in ScriptedAnswer(body: #"{"id":"\#(id)"}"#) }) { server in
                let path = folder + "/key.pem"
                let arguments = ["key", "create", "--user", "ada", "--label", "cron", "--output", path]
                try await run(arguments, server, folder)
                #expect(try OpenSSL.mode(of: path) == 0o600)
                #expect(try OpenSSL.mode(of: path + ".id") == 0o600)
                let file = try ServerKeyFile(path: path, id: nil)
                #expect(file.id == id)
                let pem = try SecretFile.read(path)
                #expect(pem.hasPrefix("-----BEGIN PRIVATE KEY-----\n") && pem.hasSuffix("\n-----END PRIVATE KEY-----"))
                #expect(try OpenSSL.run("ec", "-in", path, "-pubout").status == 0)
                let request = try #require(server.requests.first)
                #expect(request.method == "POST" && request.target == "/admin/1/keys")
                let json = try JSONParser.parse(request.body)
                #expect(json.text("publicKey") == file.key.publicKey.pemRepresentation)
                #expect(json.text("user") == "ada" && json.text("environment") == "development")
                #expect(!request.body.contains("PRIVATE".utf8))
                // What is there is never overwritten, and nothing is registered in vain.
                await #expect(throws: CommandFailure.self) { try await run(arguments, server, folder) }
                #expect(server.requests.count == 1)
                #expect(try ServerKeyFile(path: path, id: nil).id == id)
                // Nor does an id that is there become that of a new key.
                unlink(path)
                await #expect(throws: CommandFailure.self) { try await run(arguments, server, folder) }
                #expect(server.requests.count == 1 && !Paths.exists(path))
            }
        }
    }

    @Test("An administrator's token goes to a new file of its owner's and to the cluster, and is shown nowhere")
    func administrator() async throws {
        try await TemporaryFolder.with { folder in
            try await ScriptedServer.running({ _, _ in ScriptedAnswer(body: #"{"id":"ab","secret":"s"}"#) }) { server in
                let path = folder + "/grace.token"
                let arguments = ["administrator", "add", "grace", "--output", path]
                try await run(arguments, server, folder)
                #expect(try OpenSSL.mode(of: path) == 0o600)
                let request = try #require(server.requests.first)
                #expect(request.method == "POST" && request.target == "/admin/1/tokens")
                let json = try JSONParser.parse(request.body)
                #expect(json.text("kind") == "administrator" && json.text("name") == "grace")
                #expect(try SecretFile.read(path) == json.text("secret") && json.text("secret").count == 64)
                await #expect(throws: ServiceClientError.self) { try await run(arguments, server, folder) }
                #expect(server.requests.count == 1, "what is there is never overwritten, and nothing is made in vain")
            }
        }
        let refusal = ScriptedAnswer(status: 409, body: #"{"serverErrorCode":"EXISTS","reason":"there is one"}"#)
        try await TemporaryFolder.with { folder in
            try await ScriptedServer.running({ _, _ in refusal }) { server in
                let path = folder + "/grace.token"
                await #expect(throws: CommandFailure.self) {
                    try await run(["administrator", "add", "grace", "--output", path], server, folder)
                }
                #expect(!Paths.exists(path))
            }
        }
    }

    @Test("A key that was not registered leaves no file, and a private key is never sent")
    func notRegistered() async throws {
        let refusal = ScriptedAnswer(status: 404, body: #"{"serverErrorCode":"NOT_FOUND","reason":"no user 'ada'"}"#)
        try await TemporaryFolder.with { folder in
            try await ScriptedServer.running({ _, _ in refusal }) { server in
                let path = folder + "/key.pem"
                await #expect(throws: CommandFailure.self) {
                    try await run(["key", "create", "--user", "ada", "--output", path], server, folder)
                }
                #expect(!Paths.exists(path))
                #expect(server.requests.count == 1)
                try PrivateFile.create(path, OpenSSL.samplePrivateKey)
                await #expect(throws: CommandFailure.self) {
                    try await run(["key", "create", "--user", "ada", "--public-key", path], server, folder)
                }
                #expect(server.requests.count == 1)
            }
        }
    }

    @Test(
        "Where a key may have been registered, its private key stays; where it was not, the file goes",
        arguments: [
            (500, #"{"serverErrorCode":"INTERNAL_ERROR","reason":"lost"}"#, true),
            (503, #"{"serverErrorCode":"TRY_AGAIN_LATER","reason":"outcome unknown: no answer"}"#, true),
            (503, #"{"serverErrorCode":"TRY_AGAIN_LATER","reason":"nothing was done: no leader"}"#, false),
            (200, "{}", true), (502, "<html>", true), (401, "<html>", false),
        ])
    func unknownOutcome(status: Int, body: String, stays: Bool) async throws {
        try await TemporaryFolder.with { folder in
            try await ScriptedServer.running({ _, _ in ScriptedAnswer(status: status, body: body) }) { server in
                let path = folder + "/key.pem"
                let error = await #expect(throws: CommandFailure.self) {
                    try await run(
                        ["key", "create", "--user", "ada", "--output", path, "--timeout", "0"], server, folder)
                }
                #expect(Paths.exists(path) == stays)
                #expect(error?.message.contains("its private key stays in \(path)") == stays)
                #expect(error?.isOutcomeUnknown == stays)
            }
        }
    }
}
