import Foundation
import RecordModel
import ServiceClient
import TestSupport
import Testing

@testable import CloudKit

@Suite("Operations that are cancelled between their requests")
struct CancelledOperationTests {
    /// A database of a server that saves and finds each record, and makes each zone.
    private func running(_ body: (CKDatabase, ScriptedServer) async throws -> Void) async throws {
        try await ScriptedServer.running { request, _ in
            let json = (try? JSONParser.parse(request.body)) ?? .null
            let operations = json["operations"]?.array
            if request.path.hasSuffix("zones/modify") {
                let names = operations?.compactMap { $0["zone"]?["zoneID"]?["zoneName"]?.string } ?? []
                let zones = names.map { #"{"zoneID":{"zoneName":"\#($0)"},"atomic":true}"# }
                return ScriptedAnswer(body: #"{"zones":[\#(zones.joined(separator: ","))]}"#)
            }
            let names = operations?.map { $0["record"] ?? .null } ?? json["records"]?.array ?? []
            let records = names.compactMap { $0["recordName"]?.string }.map {
                #"{"recordName":"\#($0)","recordType":"T","recordChangeTag":"1","fields":{}}"#
            }
            return ScriptedAnswer(body: #"{"records":[\#(records.joined(separator: ","))]}"#)
        } _: { server in
            let configuration = ZonekeeperConfiguration(
                urls: [server.url], container: "cancelled", apiToken: "a", webAuthToken: UUID().uuidString,
                patience: .zero)
            try await body(CKContainer(configuration: configuration).privateCloudDatabase, server)
        }
    }

    private static let ids = (0..<400).map { CKRecord.ID(recordName: "r\($0)") }

    /// What the blocks of an operation are called with.
    private let items = Log<CKError.Code?>()
    private let end = Log<CKError.Code?>()
    private let olderEnd = Log<CKError.Code?>()

    private func expectHalf(_ server: ScriptedServer) {
        #expect(server.requests.count == 1)
        #expect(items.all.filter { $0 == nil }.count == 200)
        #expect(items.all.filter { $0 == .operationCancelled }.count == 200)
        #expect(end.all == [.operationCancelled] && olderEnd.all == [.operationCancelled])
    }

    @Test("A save ends with operationCancelled, and so do the records of the requests that were not sent")
    func save() async throws {
        try await running { database, server in
            let operation = CKModifyRecordsOperation(
                recordsToSave: Self.ids.map { CKRecord(recordType: "T", recordID: $0) })
            operation.isAtomic = false
            operation.perRecordSaveBlock = { [unowned operation, items] _, result in
                operation.cancel()
                items.add(result.code)
            }
            operation.modifyRecordsResultBlock = { [end] in end.add($0.code) }
            operation.modifyRecordsCompletionBlock = { [olderEnd] in olderEnd.add(($2 as? CKError)?.code) }
            await run(operation, on: database)
            expectHalf(server)
        }
    }

    @Test("A fetch ends with operationCancelled, and so do the records of the requests that were not sent")
    func fetch() async throws {
        try await running { database, server in
            let operation = CKFetchRecordsOperation(recordIDs: Self.ids)
            operation.perRecordResultBlock = { [unowned operation, items] _, result in
                operation.cancel()
                items.add(result.code)
            }
            operation.fetchRecordsResultBlock = { [end] in end.add($0.code) }
            operation.fetchRecordsCompletionBlock = { [olderEnd] in olderEnd.add(($1 as? CKError)?.code) }
            await run(operation, on: database)
            expectHalf(server)
        }
    }

    @Test("An operation on zones that is cancelled by a block of a zone ends with operationCancelled")
    func zones() async throws {
        try await running { database, _ in
            let operation = CKModifyRecordZonesOperation(
                recordZonesToSave: [CKRecordZone(zoneName: "a"), CKRecordZone(zoneName: "b")])
            operation.perRecordZoneSaveBlock = { [unowned operation, items] _, result in
                operation.cancel()
                items.add(result.code)
            }
            operation.modifyRecordZonesResultBlock = { [end] in end.add($0.code) }
            operation.modifyRecordZonesCompletionBlock = { [olderEnd] in olderEnd.add(($2 as? CKError)?.code) }
            await run(operation, on: database)
            #expect(items.all == [nil, nil])
            #expect(end.all == [.operationCancelled] && olderEnd.all == [.operationCancelled])
        }
    }
}
