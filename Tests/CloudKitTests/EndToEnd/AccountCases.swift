import Foundation
import TestSupport
import Testing

@testable import CloudKit

extension EndToEnd {
    // Serialized as there is one configuration in force.
    @Suite("Accounts and trouble", .serialized)
    struct AccountCases {
        @Test("Two users of one process see their own private data and the public data of both")
        func isolation() async throws {
            let (ada, bob) = (try await Cloud.container(), try await Cloud.container())
            let record = try await ada.privateCloudDatabase.save(note(1, text: "ada's"))
            #expect(
                await failure { try await bob.privateCloudDatabase.record(for: record.recordID) }?.code == .unknownItem)
            let shared = CKRecord(recordType: "Note")
            try await ada.publicCloudDatabase.save(shared)
            let seen = try await bob.publicCloudDatabase.record(for: shared.recordID)
            let adaID = try await ada.userRecordID()
            #expect(seen.creatorUserRecordID == adaID)
            #expect(try await bob.userRecordID() != adaID)
            seen["text"] = "bob's"
            #expect(await failure { try await bob.publicCloudDatabase.save(seen) }?.code == .permissionFailure)
            #expect(try await ada.accountStatus() == .available)
            // The same account elsewhere sees what it saved.
            let again = CKContainer(configuration: try ada.account.configuration())
            #expect(try await again.privateCloudDatabase.record(for: record.recordID)["text"] as? String == "ada's")
        }

        @Test("Nobody signed in: public data can be read, nothing else, and the status says so")
        func signedOut() async throws {
            let node = try await Cloud.shared.node()
            let writer = CKContainer(configuration: try await node.user())
            let record = try await writer.publicCloudDatabase.save(CKRecord(recordType: "Note"))
            var configuration = node.configuration
            configuration.webAuthToken = nil
            let container = CKContainer(configuration: configuration)
            #expect(try await container.accountStatus() == .noAccount)
            #expect(try await container.publicCloudDatabase.record(for: record.recordID).recordType == "Note")
            #expect(await failure { try await container.userRecordID() }?.code == .notAuthenticated)
            let own = container.privateCloudDatabase
            #expect(await failure { try await own.allRecordZones() }?.code == .notAuthenticated)
            let write = await failure { try await container.publicCloudDatabase.save(CKRecord(recordType: "Note")) }
            #expect(write?.code == .notAuthenticated)
        }

        @Test("A session that was revoked is no account any more, and whoever listens is told")
        func revoked() async throws {
            let node = try await Cloud.shared.node()
            let (configuration, id) = try await node.sessions(1)[0]
            let container = CKContainer(configuration: configuration)
            #expect(try await container.accountStatus() == .available)
            let told = Log<Bool>()
            let session = try container.account.session().session
            let observation = ZonekeeperConfiguration.observeAccount { change in
                if case .signedOut(let other) = change, other === session { told.add(true) }
            }
            _ = try await node.client.admin("DELETE", "tokens?id=\(id)")
            #expect(try await container.accountStatus() == .noAccount)
            #expect(
                await failure { try await container.privateCloudDatabase.allRecordZones() }?.code == .notAuthenticated)
            #expect(told.all == [true])
            observation.cancel()
        }

        @Test("Where no node listens, calls fail at once with networkUnavailable, and the status cannot be determined")
        func serverGone() async throws {
            var configuration = try await Cloud.shared.node().configuration
            configuration.urls = ["https://127.0.0.1:\(try FreePorts.take(1)[0])"]
            let container = CKContainer(configuration: configuration)
            let database = container.privateCloudDatabase
            #expect(await failure { try await database.save(note(1)) }?.code == .networkUnavailable)
            #expect(await failure { try await container.accountStatus() }?.code == .networkUnavailable)
            let status = await withCheckedContinuation { continuation in
                container.accountStatus { status, error in
                    continuation.resume(returning: (status, (error as? CKError)?.code))
                }
            }
            #expect(status.0 == .couldNotDetermine && status.1 == .networkUnavailable)
            let operation = CKModifyRecordsOperation(recordsToSave: [note(1)])
            let log = Log<CKError.Code?>()
            operation.modifyRecordsResultBlock = { log.add($0.code) }
            await run(operation, on: database)
            #expect(log.all == [.networkUnavailable])
        }

        @Test("A container over its rate is told when to come back; patient calls come back by themselves")
        func throttled() async throws {
            let node = try await Cloud.shared.node()
            var configuration = try await node.user(of: try await node.newContainer())
            configuration.patience = .zero
            _ = try await node.client.admin(
                "PATCH", "limits?container=\(configuration.container)", #"{"requestsPerSecond": 1}"#)
            let hasty = CKContainer(configuration: configuration).privateCloudDatabase
            // All at once: one after the other they might come no faster than the limit, on a busy machine.
            let refusal = await withTaskGroup { tasks in
                for _ in 0..<20 { tasks.addTask { await failure { try await hasty.allRecordZones() } } }
                return await tasks.reduce(nil as CKError?) { $0 ?? $1 }
            }
            #expect(refusal?.code == .requestRateLimited)
            #expect((refusal?.retryAfterSeconds ?? 0) > 0)
            configuration.patience = .seconds(600)
            let patient = CKContainer(configuration: configuration).privateCloudDatabase
            #expect(try await patient.allRecordZones().count == 1)
        }

        @Test("Nothing configured, or another container, is an error that says what to do")
        func notConfigured() async throws {
            let node = try await Cloud.shared.node()
            ZonekeeperConfiguration.use(nil)
            let error = await failure { try await CKContainer.default().accountStatus() }
            #expect(error?.code == .badContainer)
            #expect(error?.localizedDescription.contains("ZONEKEEPER_CONTAINER") == true)
            #expect(CKContainer.default().containerIdentifier == nil)
            ZonekeeperConfiguration.use(node.configuration)
            #expect(CKContainer.default().containerIdentifier == node.container)
            #expect(try await CKContainer.default().accountStatus() == .available)
            #expect(try await CKContainer(identifier: node.container).accountStatus() == .available)
            let other = CKContainer(identifier: "iCloud.com.example.other")
            #expect(await failure { try await other.accountStatus() }?.code == .badContainer)
            var absent = node.configuration
            absent.container = "iCloud.com.example.absent"
            let database = CKContainer(configuration: absent).publicCloudDatabase
            let code = await failure { try await database.record(for: CKRecord.ID(recordName: "x")) }?.code
            #expect(code == .badContainer || code == .notAuthenticated)
            ZonekeeperConfiguration.use(nil)
        }

        @Test("Work goes on as the user with whom it began, when another account is put in force meanwhile")
        func pinned() async throws {
            let node = try await Cloud.shared.node()
            let (ada, bob) = (try await node.user(), try await node.user())
            ZonekeeperConfiguration.use(ada)
            let account = try ContainerAccount.current(identifier: nil).pinned()
            ZonekeeperConfiguration.use(bob)
            #expect(try account.configuration().webAuthToken == ada.webAuthToken)
            #expect(try account.pinned() == account)
            ZonekeeperConfiguration.use(nil)
        }

        @Test("What the server does not have yet fails with words")
        func notBuilt() async throws {
            let container = try await Cloud.container()
            let shared = await failure { try await container.sharedCloudDatabase.allRecordZones() }
            #expect(shared?.code == .serverRejectedRequest && shared?.localizedDescription.contains("sharing") == true)
        }
    }
}
