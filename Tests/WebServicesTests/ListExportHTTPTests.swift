import Directory
import RecordModel
import TestSupport
import Testing

@testable import Service
@testable import WebServices

@Suite("Lists as files over HTTP")
struct ListExportHTTPTests {
    private static func records(_ page: SignInWorld.Page) throws -> [JSONValue] {
        try page.text.split(separator: "\n").map { try JSONParser.parse(Array($0.utf8)) }
    }

    @Test("a log of many pages is one file, in the order that was asked for")
    func pages() async throws {
        let world = try await ConsoleWorld()
        let service = world.node.recordService
        for part in 0..<5 {
            let events = (0..<500).map { number in
                let origin = AuditOrigin(
                    actor: "somebody", requestID: "\(part * 500 + number)", address: "", time: service.now)
                return AuditEvent(origin: origin, action: "many", subject: "part \(part)")
            }
            try await service.cluster.enter(DirectoryEntry(nil, events: events), by: service.deadline())
        }
        let oldest = try await world.token("GET", "audit/export?format=lines&action=many")
        #expect(oldest.status == 200 && oldest["content-type"] == "application/x-ndjson; charset=UTF-8")
        #expect(oldest["content-disposition"] == "attachment; filename=\"audit-changes.jsonl\"")
        let ids = try Self.records(oldest).compactMap { $0["requestID"]?.string }
        #expect(ids == (0..<2_500).map(String.init))
        let newest = try await world.token("GET", "audit/export?format=lines&action=many&order=newest")
        #expect(try Self.records(newest).compactMap { $0["requestID"]?.string } == ids.reversed())
        let whole = try await world.token("GET", "audit/export")
        #expect(whole.text.split(separator: "\r\n").count > 2_501)

        // Who sees only what they did has no more of it in a file.
        let viewer = try await world.member("vera", "viewer")
        let own = try await world.browse(viewer, "GET", "audit/export?format=lines")
        #expect(try Self.records(own).map { $0["actor"]?.string } == ["administrator vera (console)"])
        try await world.node.stop()
    }
}
