import Foundation
import RecordModel
import Synchronization
import TestSupport
import Testing

@testable import ServiceClient

@Suite("How long sessions live")
struct SessionLifeTests {
    private func configuration(_ server: ScriptedServer, file: String? = nil) -> ZonekeeperConfiguration {
        ZonekeeperConfiguration(
            urls: [server.url], container: "c", apiToken: "api", webAuthToken: file == nil ? "t0" : nil,
            webAuthTokenFile: file)
    }

    /// Answers every request with the next token.
    private static func renewing(_ request: ScriptedRequest, _ earlier: Int) -> ScriptedAnswer {
        ScriptedAnswer(
            headers: [("X-Apple-CloudKit-Web-Auth-Token", "t\(earlier + 1)")], body: #"{"userRecordName":"_u"}"#)
    }

    private func ask(_ session: ServiceSession) async throws {
        _ = try await session.send(database: "private", action: "zones/list", body: Array("{}".utf8))
    }

    @Test("A session ends with whoever holds it; its newest token is sent on when it is begun anew")
    func released() async throws {
        try await ScriptedServer.running(Self.renewing) { server in
            weak var first: ServiceSession?
            do {
                let account = ServiceAccount(configuration(server))
                let session = try account.session()
                first = session
                #expect(try account.session() === session)
                #expect(try ServiceSession.of(configuration(server)) === session)
                try await ask(session)
            }
            #expect(first == nil, "nobody holds it")
            try await ask(try ServiceSession.of(configuration(server)))
            try await ask(try ServiceSession.of(configuration(server)))
            #expect(server.requests.map { $0.parameter("ckWebAuthToken") } == ["t0", "t1", "t2"])
        }
    }

    @Test("A token that cannot be written to its file is said, and goes on in this process")
    func unwritable() async throws {
        try await ScriptedServer.running(Self.renewing) { server in
            let heard = Mutex<[String]>([])
            Warnings.redirect { text in heard.withLock { $0.append(text) } }
            defer { Warnings.redirect(to: nil) }
            try await TemporaryFolder.with { folder in
                let path = folder + "/inner/session"
                try FileManager.default.createDirectory(atPath: folder + "/inner", withIntermediateDirectories: true)
                try PrivateFile.create(path, "t0\n")
                do {
                    let session = try ServiceSession.of(configuration(server, file: path))
                    try await ask(session)
                    #expect(try SecretFile.read(path) == "t2", "who it is was asked as well")
                    try FileManager.default.removeItem(atPath: folder + "/inner")
                    try await ask(session)
                    try await ask(session)
                }
                let said = heard.withLock { $0 }
                #expect(said.count == 2 && said.first == said.last, "the same text is said once by itself")
                #expect(said.first?.contains("the session's new token is not kept: \(path) cannot be written") == true)
                // Begun anew with what the file had, it would be taken for stolen.
                try await ask(try ServiceSession.of(configuration(server, file: path)))
                #expect(server.requests.last?.parameter("ckWebAuthToken") == "t5")
            }
        }
    }

    @Test("What nobody holds is swept out of the book of those that are known")
    func sweeping() {
        final class Thing {}
        var book = WeakRegistry<Int, Thing>()
        let held = Thing()
        book.set(held, for: -1)
        for number in 0..<10_000 { book.set(Thing(), for: number) }
        #expect(book.object(of: -1) === held)
        #expect(book.object(of: 9_999) == nil)
        #expect(book.count <= 64)
    }
}
