import Foundation
import RecordModel
import ServiceClient
import Synchronization
import TestSupport
import Testing

@testable import CloudKit

@Suite("Answers that would be too long, and lists longer than a request")
struct TooLongAnswerTests {
    private static let refusal =
        #"{"serverErrorCode":"BAD_REQUEST","reason":"the records asked for are too large for one answer; ask for fewer of them, or for desiredKeys"}"#

    private func running(
        _ answer: @escaping @Sendable (JSONValue, ScriptedRequest, Int) -> ScriptedAnswer,
        _ body: (CKDatabase, ScriptedServer) async throws -> Void
    ) async throws {
        let server: @Sendable (ScriptedRequest, Int) -> ScriptedAnswer = { request, earlier in
            answer((try? JSONParser.parse(request.body)) ?? .null, request, earlier)
        }
        try await ScriptedServer.running(server) { server in
            let configuration = ZonekeeperConfiguration(
                urls: [server.url], container: "long", apiToken: "a", webAuthToken: "u", patience: .zero)
            try await body(CKContainer(configuration: configuration).privateCloudDatabase, server)
        }
    }

    private static func record(_ name: String) -> String {
        #"{"recordName":"\#(name)","recordType":"T","recordChangeTag":"1","fields":{}}"#
    }

    @Test("Records that are too large together are looked up in halves, and come in their order")
    func lookups() async throws {
        try await running { body, _, _ in
            let names = body["records"]?.array?.compactMap { $0["recordName"]?.string } ?? []
            guard names.count <= 60 else { return ScriptedAnswer(status: 400, body: Self.refusal) }
            return ScriptedAnswer(body: #"{"records":[\#(names.map(Self.record).joined(separator: ","))]}"#)
        } _: { database, server in
            let ids = (0..<200).map { CKRecord.ID(recordName: "r\($0)") }
            let found = try await database.records(for: ids)
            #expect(found.count == 200 && found.values.allSatisfy { (try? $0.get()) != nil })
            // 200, 100, 50, 50, 100, 50, 50
            #expect(server.requests.count == 7)
        }
    }

    @Test("Records for which an answer has no room are looked up in further ones")
    func noRoom() async throws {
        try await running { body, _, _ in
            let names = body["records"]?.array?.compactMap { $0["recordName"]?.string } ?? []
            let records = names.prefix(60).map(Self.record) + names.dropFirst(60).map { _ in Self.refusal }
            return ScriptedAnswer(body: #"{"records":[\#(records.joined(separator: ","))]}"#)
        } _: { database, server in
            let ids = (0..<200).map { CKRecord.ID(recordName: "r\($0)") }
            let found = try await database.records(for: ids)
            #expect(found.count == 200 && found.allSatisfy { (try? $1.get())?.recordID == $0 })
            #expect(server.requests.count == 4)
        }
    }

    @Test("Records that no answer has room for keep none of those behind them away")
    func tooLargeAlone() async throws {
        try await running { body, _, _ in
            let names = body["records"]?.array?.compactMap { $0["recordName"]?.string } ?? []
            // As a shard answers that has rendered enough.
            let isLarge = names.first?.hasPrefix("large") == true
            let records = names.map { isLarge ? Self.refusal : Self.record($0) }
            return ScriptedAnswer(body: #"{"records":[\#(records.joined(separator: ","))]}"#)
        } _: { database, _ in
            let ids = ["large1", "large2", "a", "b"].map { CKRecord.ID(recordName: $0) }
            let found = try await database.records(for: ids)
            #expect(found.count == 4 && found.count { (try? $1.get()) != nil } == 2)
            #expect(try found[ids[2]]?.get().recordID == ids[2] && found[ids[3]]?.get().recordID == ids[3])
        }
    }

    @Test("One record that is too large for an answer is an error, and the others are not lost")
    func oneTooLarge() async throws {
        try await running { _, _, _ in
            ScriptedAnswer(status: 400, body: Self.refusal)
        } _: { database, server in
            let error = await #expect(throws: CKError.self) {
                try await database.record(for: CKRecord.ID(recordName: "r"))
            }
            #expect(error?.code == .limitExceeded && server.requests.count == 1)
        }
    }

    @Test("A query's page that is too long is asked for with half the limit, until it fits")
    func queries() async throws {
        try await running { body, _, _ in
            guard case .integer(let limit)? = body["resultsLimit"], limit <= 30 else {
                return ScriptedAnswer(status: 400, body: Self.refusal)
            }
            return ScriptedAnswer(body: #"{"records":[\#(Self.record("r"))],"continuationMarker":"m"}"#)
        } _: { database, server in
            let query = CKQuery(recordType: "T", predicate: NSPredicate(value: true))
            let (results, cursor) = try await database.records(matching: query)
            #expect(results.count == 1 && cursor != nil)
            let limits = try server.requests.map { try JSONParser.parse($0.body)["resultsLimit"] }
            #expect(limits == [200, 100, 50, 25].map { .integer($0) })
        }
    }

    @Test("A page of a zone's changes that is too long is asked for with a smaller limit")
    func changes() async throws {
        try await running { body, _, _ in
            guard case .integer(let limit)? = body["zones"]?.array?.first?["resultsLimit"], limit <= 60 else {
                return ScriptedAnswer(body: #"{"zones":[\#(Self.refusal)]}"#)
            }
            return ScriptedAnswer(
                body: #"{"zones":[{"syncToken":"s","moreComing":false,"records":[\#(Self.record("r"))]}]}"#)
        } _: { database, server in
            let zone = CKRecordZone.ID(zoneName: "z")
            let page = try await database.recordZoneChanges(inZoneWith: zone, since: nil)
            #expect(page.modificationResultsByID.count == 1)
            let operation = CKFetchRecordZoneChangesOperation(recordZoneIDs: [zone])
            let count = Mutex(0)
            operation.recordWasChangedBlock = { _, _ in count.withLock { $0 += 1 } }
            try await withCheckedThrowingContinuation { (waiting: CheckedContinuation<Void, any Error>) in
                operation.fetchRecordZoneChangesResultBlock = { waiting.resume(with: $0) }
                database.add(operation)
            }
            #expect(count.withLock { $0 } == 1 && server.requests.count == 6)
        }
    }

    @Test("Of more zones than fit a request, those that were done are told though later ones fail")
    func zones() async throws {
        try await running { body, request, earlier in
            guard earlier % 2 == 0 else {
                return ScriptedAnswer(status: 403, body: #"{"serverErrorCode":"ACCESS_DENIED"}"#)
            }
            let members = body[request.path.hasSuffix("lookup") ? "zones" : "operations"]?.array ?? []
            let zones = members.map { member in
                let name = member["zoneName"]?.string ?? member["zone"]?["zoneID"]?["zoneName"]?.string ?? ""
                return #"{"zoneID":{"zoneName":"\#(name)"},"atomic":true}"#
            }
            return ScriptedAnswer(body: #"{"zones":[\#(zones.joined(separator: ","))]}"#)
        } _: { database, server in
            let zones = (0..<250).map { CKRecordZone(zoneName: "z\($0)") }
            let made = try await database.modifyRecordZones(saving: zones, deleting: [])
            #expect(made.saveResults.count == 250)
            #expect(made.saveResults.values.filter { (try? $0.get()) != nil }.count == 200)
            let found = try await database.recordZones(for: zones.map(\.zoneID))
            #expect(found.count == 250 && found.values.filter { (try? $0.get()) != nil }.count == 200)
            #expect(server.requests.count == 4)
        }
    }
}
