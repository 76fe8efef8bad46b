import Foundation
import NIOHTTP1
import RecordModel
import ServiceClient
import Synchronization
import TestSupport
import Testing

@testable import CloudKit

@Suite("Long-lived operations")
struct LongLivedOperationTests {
    /// Where the operations of this process's tests are.
    private static let folder: String = {
        let folder = FileManager.default.temporaryDirectory.appending(path: "operations-\(UUID().uuidString)").path
        LongLivedStore.root.withLock { $0 = folder }
        return folder
    }()

    /// A container of a server that knows one user and saves each record.
    /// - Parameter other: what else it answers.
    private func running(
        other: @escaping @Sendable (ScriptedRequest) -> ScriptedAnswer? = { _ in nil },
        modified: @escaping @Sendable (Int) -> ScriptedAnswer = { _ in ScriptedAnswer(body: Self.saved) },
        _ body: (CKContainer, ScriptedServer) async throws -> Void
    ) async throws {
        let container = "long-lived-\(UUID().uuidString)"
        // Named now: the folder is in force from its first use on.
        let kept = Self.folder + "/" + container
        defer { try? FileManager.default.removeItem(atPath: kept) }
        let count = Mutex(0)
        try await ScriptedServer.running { request, _ in
            if request.path.hasSuffix("users/caller") { return ScriptedAnswer(body: #"{"userRecordName":"_u"}"#) }
            if let answer = other(request) { return answer }
            let earlier = count.withLock { count in
                defer { count += 1 }
                return count
            }
            return modified(earlier)
        } _: { server in
            let configuration = ZonekeeperConfiguration(
                urls: [server.url], container: container, apiToken: "a", webAuthToken: UUID().uuidString,
                patience: .zero)
            try await body(CKContainer(configuration: configuration), server)
        }
    }

    private static let saved =
        #"{"records":[{"recordName":"r","recordType":"T","recordChangeTag":"1","fields":{"n":{"value":1,"type":"INT64"}}}]}"#

    private func save() -> CKModifyRecordsOperation {
        let record = CKRecord(recordType: "T", recordID: CKRecord.ID(recordName: "r"))
        record["n"] = 1
        record.encryptedValues["secret"] = "s"
        let operation = CKModifyRecordsOperation(recordsToSave: [record])
        operation.configuration.isLongLived = true
        operation.configuration.timeoutIntervalForRequest = 17
        return operation
    }

    private static func changes(_ server: ScriptedServer) -> [(key: String?, body: [UInt8])] {
        server.requests.filter { $0.path.hasSuffix("records/modify") }
            .map { ($0.headers.first(name: "Idempotency-Key"), $0.body) }
    }

    @Test("One is on disk before anything is sent, and its file is removed when it ends")
    func life() async throws {
        try await running { container, server in
            let operation = save()
            let seen = Log<[String]>()
            let store = try await container.privateCloudDatabase.service.longLivedStore()
            operation.longLivedOperationWasPersistedBlock = {
                seen.add(store.ids() + ["\(Self.changes(server).count) sent"])
            }
            await run(operation, on: container.privateCloudDatabase)
            #expect(seen.all == [[operation.operationID, "0 sent"]])
            #expect(Self.changes(server).count == 1)
            #expect(try await container.allLongLivedOperationIDs() == [])
            #expect(try await container.longLivedOperation(for: operation.operationID) == nil)
        }
    }

    @Test("Where the server cannot be reached, it is kept for the user whom the session had last, and for no other")
    func offline() async throws {
        try await running { container, server in
            #expect(try await container.allLongLivedOperationIDs() == [])
            // Another start of the program, with the same session.
            var configuration = try container.account.configuration()
            configuration.urls = ["https://127.0.0.1:1"]
            let offline = CKContainer(configuration: configuration)
            let store = LongLivedStore(
                container: configuration.container, environment: configuration.environment.rawValue, user: "_u")
            let kept = Log<[String]>()
            let operation = save()
            operation.longLivedOperationWasPersistedBlock = {
                kept.add(store.ids())
            }
            await run(operation, on: offline.privateCloudDatabase)
            #expect(kept.all == [[operation.operationID]])
            #expect(Self.changes(server).isEmpty)
            configuration.webAuthToken = "another"
            let other = CKContainer(configuration: configuration)
            #expect(await failure { try await other.allLongLivedOperationIDs() }?.code == .networkUnavailable)
        }
    }

    @Test("A user stays known where answers replace the token, and not where another program does")
    func knownUser() throws {
        let container = "known-\(UUID().uuidString)"
        let folder = Self.folder + "/" + DataFolder.fileName(container)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let known = KnownUser(container: container, environment: "development")
        let file = FileManager.default.temporaryDirectory.appending(path: "token-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: file) }
        try Data("one".utf8).write(to: file)
        let token = WebAuthToken("one", path: file.path)
        #expect(known.name(of: token) == nil)
        known.note("_u", of: token)
        token.replaced(by: "two", after: "one")
        #expect(known.name(of: token) == "_u")
        #expect(known.name(of: WebAuthToken("two")) == "_u" && known.name(of: WebAuthToken("one")) == nil)
        try Data("another's".utf8).write(to: file)
        #expect(token.takeOver())
        #expect(known.name(of: token) == nil)
        token.replaced(by: "another's next", after: "another's")
        #expect(known.name(of: token) == nil)
    }

    @Test("One that is not long-lived, or was cancelled before, is not kept")
    func notKept() async throws {
        try await running { container, _ in
            let (plain, cancelled) = (save(), save())
            plain.configuration.isLongLived = false
            cancelled.cancel()
            for operation in [plain, cancelled] {
                operation.longLivedOperationWasPersistedBlock = { Issue.record("it was kept") }
                await run(operation, on: container.privateCloudDatabase)
            }
            let ids = try await container.allLongLivedOperationIDs()
            #expect(ids == [])
        }
    }

    @Test("After another start it has its ID and its work, and sends the same under the same key")
    func resumed() async throws {
        // The answer to the first request got lost, and the program with it.
        try await running { container, server in
            let operation = save()
            operation.database = container.privateCloudDatabase
            _ = try #require(await operation.keptOnDisk())
            await operation.execute()
            let ids = await withCheckedContinuation { continuation in
                container.fetchAllLongLivedOperationIDs { ids, error in
                    continuation.resume(returning: error == nil ? ids : nil)
                }
            }
            #expect(ids == [operation.operationID])
            let fetched = await withCheckedContinuation { continuation in
                container.fetchLongLivedOperation(withID: operation.operationID) { operation, _ in
                    continuation.resume(returning: operation)
                }
            }
            let again = try #require(fetched as? CKModifyRecordsOperation)
            #expect(again !== operation && again.operationID == operation.operationID)
            #expect(again.configuration.isLongLived && again.configuration.timeoutIntervalForRequest == 17)
            #expect(again.recordsToSave?.first?.encryptedValues["secret"] as? String == "s")
            let log = Log<String>()
            again.perRecordSaveBlock = { id, result in
                log.add("\(id.recordName) \(result.failure.map { "\($0)" } ?? "saved")")
            }
            await withCheckedContinuation { continuation in
                again.completionBlock = { continuation.resume() }
                container.add(again)
            }
            #expect(log.all == ["r saved"])
            let changes = Self.changes(server)
            #expect(changes.count == 2 && changes[0].body == changes[1].body)
            #expect(changes[0].key != nil && changes[0].key == changes[1].key)
            #expect(try await container.allLongLivedOperationIDs() == [])
        }
    }

    @Test("A file that was sent before is not sent again, unless the app takes another", arguments: [false, true])
    func resumedWithFile(takesOther: Bool) async throws {
        let folder = try TestFolder()
        defer { folder.remove() }
        let (file, otherFile) = (try folder.file(someBytes(100), "a"), try folder.file(someBytes(100, seed: 2), "b"))
        let url = Mutex("")
        let uploads = Mutex(0)
        // Each upload has a receipt of its own.
        try await running { request in
            if request.path.hasSuffix("assets/upload") {
                return ScriptedAnswer(body: #"{"tokens":[{"url":"\#(url.withLock { $0 })/up/1"}]}"#)
            }
            guard request.path.hasPrefix("/up/") else { return nil }
            let number = uploads.withLock { count in
                count += 1
                return count
            }
            return ScriptedAnswer(
                body: #"{"singleFile":{"receipt":"r\#(number)","fileChecksum":"c","size":100,"wrappingKey":"w"}}"#)
        } _: { container, server in
            url.withLock { $0 = server.url }
            let operation = save()
            operation.recordsToSave?.first?["image"] = CKAsset(fileURL: file)
            operation.database = container.privateCloudDatabase
            _ = try #require(await operation.keptOnDisk())
            await operation.execute()
            let again = try #require(
                try await container.longLivedOperation(for: operation.operationID) as? CKModifyRecordsOperation)
            if takesOther { again.recordsToSave?.first?["image"] = CKAsset(fileURL: otherFile) }
            let saved = Log<Bool>()
            again.perRecordSaveBlock = { _, result in saved.add(result.failure == nil) }
            await run(again, on: container.privateCloudDatabase)
            #expect(saved.all == [true])
            let changes = Self.changes(server)
            #expect(changes.count == 2 && uploads.withLock { $0 } == (takesOther ? 2 : 1))
            #expect((changes.first?.body == changes.last?.body) != takesOther)
            #expect((changes.first?.key == changes.last?.key) != takesOther)
        }
    }

    @Test("Its file is for its owner's eyes only, and nobody else's list has it")
    func files() async throws {
        try await running { container, _ in
            let operation = save()
            operation.database = container.privateCloudDatabase
            let store = try #require(await operation.keptOnDisk())
            let path = "\(store.folder)/\(operation.operationID.replacing("-", with: "%2d")).json"
            let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber
            #expect(mode?.intValue == 0o600)
            let other = LongLivedStore(
                container: try #require(container.containerIdentifier), environment: "development", user: "_other")
            #expect(other.ids() == [] && store.ids() == [operation.operationID])
            try Data("{".utf8).write(to: URL(filePath: path))
            #expect(store.ids() == [] && store.copy(of: operation.operationID) == nil)
        }
    }

    @Test("A key is the same for the same request until servers have forgotten it")
    func keys() throws {
        var keys = LongLivedKeys(now: 1_000)
        keys.receipts = AssetReceipts(of: [], before: [], in: .private)
        let later = try JSONDecoder().decode(LongLivedKeys.self, from: JSONEncoder().encode(keys))
        let body = Array("body".utf8)
        let key = keys.key(for: "records/modify", body, now: 2_000)
        #expect(key == later.key(for: "records/modify", body, now: 23 * 3_600_000))
        #expect(key != later.key(for: "records/modify", body, now: 24 * 3_600_000))
        #expect(key != keys.key(for: "zones/modify", body, now: 2_000))
        #expect(key != keys.key(for: "records/modify", body + [0], now: 2_000))
        #expect(key != LongLivedKeys(now: 1_000).key(for: "records/modify", body, now: 2_000))
        #expect(UUIDv7(key) != nil)
        #expect(later.knownReceipts(now: 23 * 3_600_000) == keys.receipts)
        #expect(later.knownReceipts(now: 24 * 3_600_000) == nil)
    }

    @Test("What each class is to do survives the disk")
    func works() throws {
        let container = CKContainer(
            configuration: ZonekeeperConfiguration(urls: ["https://127.0.0.1:1"], container: "c", apiToken: "t"))
        func restored<T: LongLivedWork>(_ operation: T) throws -> T {
            operation.database = container.publicCloudDatabase
            let copy = CKDatabaseOperation.copy(of: operation, LongLivedKeys())
            let data = try JSONEncoder().encode(copy)
            let read = try JSONDecoder().decode(LongLivedCopy.self, from: data)
            let result = try #require(try CKDatabaseOperation.restored(read, in: container) as? T)
            #expect(result.operationID == operation.operationID && result.database?.databaseScope == .public)
            return result
        }
        let (zone, id) = (CKRecordZone.ID(zoneName: "z"), CKRecord.ID(recordName: "r"))
        let token = CKServerChangeToken("t")

        let save = CKModifyRecordsOperation(recordIDsToDelete: [id])
        (save.savePolicy, save.isAtomic, save.clientChangeTokenData) = (.allKeys, false, Data([1]))
        save.group = CKOperationGroup()
        save.group?.name = "import"
        let saveAgain = try restored(save)
        #expect(saveAgain.recordsToSave == nil && saveAgain.recordIDsToDelete == [id])
        #expect(saveAgain.savePolicy == .allKeys && !saveAgain.isAtomic)
        #expect(saveAgain.clientChangeTokenData == Data([1]) && saveAgain.group?.name == "import")

        let fetch = CKFetchRecordsOperation(recordIDs: [id])
        fetch.desiredKeys = ["a"]
        #expect(try restored(fetch).recordIDs == [id])
        #expect(try restored(fetch).desiredKeys == ["a"])
        #expect(try restored(CKFetchRecordsOperation.fetchCurrentUserRecordOperation()).isForCurrentUser)

        let query = CKQueryOperation(query: CKQuery(recordType: "T", predicate: NSPredicate(format: "a > %@", 3)))
        (query.zoneID, query.resultsLimit) = (zone, 5)
        let queryAgain = try restored(query)
        #expect(queryAgain.query?.description == query.query?.description && queryAgain.zoneID == zone)
        #expect(queryAgain.resultsLimit == 5 && queryAgain.cursor == nil)

        let zones = CKModifyRecordZonesOperation(
            recordZonesToSave: [CKRecordZone(zoneName: "a")], recordZoneIDsToDelete: [zone])
        #expect(try restored(zones).recordZonesToSave?.map(\.zoneID.zoneName) == ["a"])
        #expect(try restored(zones).recordZoneIDsToDelete == [zone])
        #expect(try restored(CKFetchRecordZonesOperation(recordZoneIDs: [zone])).recordZoneIDs == [zone])
        #expect(try restored(CKFetchRecordZonesOperation()).recordZoneIDs == nil)

        let changes = CKFetchDatabaseChangesOperation(previousServerChangeToken: token)
        (changes.resultsLimit, changes.fetchAllChanges) = (3, false)
        let changesAgain = try restored(changes)
        #expect(changesAgain.previousServerChangeToken == token)
        #expect(changesAgain.resultsLimit == 3 && !changesAgain.fetchAllChanges)
        let zoneChanges = CKFetchRecordZoneChangesOperation(
            recordZoneIDs: [zone],
            configurationsByRecordZoneID: [zone: .init(previousServerChangeToken: token, desiredKeys: ["a"])])
        let configuration = try restored(zoneChanges).configurationsByRecordZoneID?[zone]
        #expect(configuration?.previousServerChangeToken == token && configuration?.desiredKeys == ["a"])

        let subscription = CKDatabaseSubscription(subscriptionID: "s")
        let subscriptions = CKModifySubscriptionsOperation(
            subscriptionsToSave: [subscription], subscriptionIDsToDelete: ["t"])
        #expect(try restored(subscriptions).subscriptionsToSave == [subscription])
        #expect(try restored(subscriptions).subscriptionIDsToDelete == ["t"])
        #expect(try restored(CKFetchSubscriptionsOperation(subscriptionIDs: ["s"])).subscriptionIDs == ["s"])
    }

    @Test("An operation of a later version's is an error that says so")
    func laterVersion() throws {
        let container = CKContainer(
            configuration: ZonekeeperConfiguration(urls: ["https://127.0.0.1:1"], container: "c", apiToken: "t"))
        var copy = CKDatabaseOperation.copy(of: CKFetchRecordsOperation(), LongLivedKeys())
        copy.operation = "CKLaterOperation"
        let error = #expect(throws: CKError.self) { try CKDatabaseOperation.restored(copy, in: container) }
        #expect(error?.code == .incompatibleVersion)
    }
}
