import Foundation
import NIOCore
import RecordModel
import Synchronization
import TestSupport
import Testing

@testable import ServiceClient

@Suite("Files on their way")
struct AssetTransferTests {
    @Test(
        "A URL is asked at its own node first, then at the others; an unknown host gets nothing unencrypted",
        arguments: [
            ("https://b:1/x?y=1", ["https://b:1/x?y=1", "https://a:1/x?y=1"]),
            ("https://c/x", ["https://c/x", "https://a:1/x", "https://b:1/x"]),
            ("http://c/x", ["https://a:1/x", "https://b:1/x"]), ("/x", ["https://a:1/x", "https://b:1/x"]),
            ("https://a:1/x/${f}", ["https://a:1/x/asset", "https://b:1/x/asset"]), ("https://c", []), ("x", []),
        ])
    func addresses(url: String, expected: [String]) {
        #expect(AssetTransfer.addresses(url, of: ["https://a:1", "https://b:1"]).map(\.url) == expected)
    }

    private func transfer(_ server: ScriptedServer) throws -> AssetTransfer {
        try ServiceSession(ZonekeeperConfiguration(urls: [server.url], container: "c", apiToken: "a"))
            .assetTransfer(patience: .zero)
    }

    @Test("A disk that is full ends a download with its error, and the node is not asked again")
    func fullDisk() async throws {
        try await ScriptedServer.running { _, _ in
            ScriptedAnswer(body: "0123456789")
        } _: { server in
            let descriptor = open("/dev/full", O_WRONLY)
            defer { close(descriptor) }
            let sink = AssetSink(stream: descriptor, name: "the disk")
            let error = await #expect(throws: AssetFileError.self) {
                try await transfer(server).download(server.url + "/x", size: 10, to: sink)
            }
            #expect(error == .notWritten(path: "the disk", code: ENOSPC) && server.requests.count == 1)
            #expect(error?.description.contains("No space left") == true)
        }
    }

    @Test("What was written to a stream cannot be taken back")
    func streams() async throws {
        try await ScriptedServer.running { _, earlier in
            ScriptedAnswer(headers: [("Repr-Digest", "sha-256=:AAAA:")], body: "0123456789")
        } _: { server in
            let descriptor = open("/dev/null", O_WRONLY)
            defer { close(descriptor) }
            let sink = AssetSink(stream: descriptor, name: "null")
            await #expect(throws: AssetFileError.notWritten(path: "null", code: ESPIPE)) {
                try await transfer(server).download(server.url + "/x", size: 10, to: sink)
            }
        }
    }

    @Test("A right digest is found right, and the file stays")
    func digest() async throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path
        defer { try? FileManager.default.removeItem(atPath: path) }
        // SHA-256 of "abc", from FIPS 180-4.
        let digest = "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="
        try await ScriptedServer.running { _, _ in
            ScriptedAnswer(headers: [("Repr-Digest", "sha-256=:\(digest):")], body: "abc")
        } _: { server in
            let sink = try AssetSink(creating: path)
            let moved = Mutex<[Int64]>([])
            try await transfer(server).download(server.url + "/x", size: 3, to: sink) { bytes in
                moved.withLock { $0.append(bytes) }
            }
            #expect(server.requests.count == 1 && moved.withLock { $0 } == [3])
        }
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "abc")
    }

    @Test("An answer to an upload that is no asset's dictionary is no success")
    func strangeAnswer() async throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path
        try Data([1, 2, 3]).write(to: URL(fileURLWithPath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        let source = try AssetSource(path: path)
        try await ScriptedServer.running { _, _ in
            ScriptedAnswer()
        } _: { server in
            _ = await #expect(throws: ServiceFailure.self) {
                try await transfer(server).upload(source, to: server.url + "/x")
            }
        }
        try await ScriptedServer.running { _, _ in
            ScriptedAnswer(body: #"{"singleFile":{"receipt":"r","size":2}}"#)
        } _: { server in
            _ = await #expect(throws: AssetDamaged.self) {
                try await transfer(server).upload(source, to: server.url + "/x")
            }
        }
    }
}
