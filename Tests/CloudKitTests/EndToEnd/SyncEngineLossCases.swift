import Foundation
import TestSupport
import Testing

@testable import CloudKit

extension EndToEnd {
    @Suite("Sync engine: no change is lost", .timeLimit(.minutes(10)))
    struct SyncEngineLossCases {
        private static let zone = CKRecordZone.ID(zoneName: "Notes")

        private func save(_ names: [String], on device: Device) -> [CKSyncEngine.PendingRecordZoneChange] {
            names.map { .saveRecord(device.write($0, "1")) }
        }

        @Test("A record that cannot be sent is told as failed, and holds up no other")
        func unusable() async throws {
            let device = Device(try await Cloud.container().privateCloudDatabase)
            device.makeBatch = { batch in
                for record in batch?.recordsToSave ?? [] where record.recordID.recordName == "bad" {
                    record.setValue(["key": 1], forKey: "text")
                }
                return batch
            }
            device.engine.state.add(pendingRecordZoneChanges: save(["bad", "good"], on: device))
            #expect(await failure { try await device.engine.sendChanges() }?.code == .partialFailure)
            #expect(device.errors == ["bad": .invalidArguments])
            #expect(device.told.contains("records +1 -0 !1"))
            #expect(device.engine.state.pendingRecordZoneChanges.isEmpty)
        }

        @Test("A record or zone that the server refuses by its name is told as failed, and others are saved")
        func refusedName() async throws {
            let device = Device(try await Cloud.container().privateCloudDatabase)
            let zones = ["\u{e9}", "Other"].map { CKRecordZone(zoneName: $0) }
            device.engine.state.add(pendingDatabaseChanges: zones.map { .saveZone($0) })
            device.engine.state.add(pendingRecordZoneChanges: save(["b", "\u{e9}", "c", "a"], on: device))
            #expect(await failure { try await device.engine.sendChanges() }?.code == .partialFailure)
            #expect(device.told.contains("zones +2 -0 !1") && device.told.contains("records +3 -0 !1"))
            #expect(device.errors == ["\u{e9}": .invalidArguments])
            #expect(!device.engine.state.hasPending)
        }

        @Test("A batch that is refused as a whole is told as failed, and is not sent for ever")
        func refusedBatch() async throws {
            let device = Device(try await Cloud.container().privateCloudDatabase)
            device.makeBatch = { batch in
                guard let record = batch?.recordsToSave.first else { return nil }
                return CKSyncEngine.RecordZoneChangeBatch(
                    recordsToSave: [record], recordIDsToDelete: [record.recordID])
            }
            device.engine.state.add(pendingRecordZoneChanges: save(["a"], on: device))
            #expect(await failure { try await device.engine.sendChanges() }?.code == .partialFailure)
            #expect(device.errors == ["a": .invalidArguments])
            #expect(device.engine.state.pendingRecordZoneChanges.isEmpty)
        }

        @Test("Changes that fail and are added again do not keep those behind them from being sent")
        func behindFailures() async throws {
            let container = try await Cloud.container()
            let (ada, bob) = (Device(container.privateCloudDatabase), Device(container.privateCloudDatabase))
            let names = (0..<200).map { "note-\($0)" }
            ada.engine.state.add(pendingRecordZoneChanges: save(names, on: ada))
            try await ada.engine.sendChanges()
            bob.engine.state.add(pendingRecordZoneChanges: save(names + ["last"], on: bob))
            #expect(await failure { try await bob.engine.sendChanges() }?.code == .partialFailure)
            #expect(bob.told.filter { $0.hasPrefix("records") } == ["records +0 -0 !200", "records +1 -0 !0"])
            #expect(bob.engine.state.pendingRecordZoneChanges.count == 200)
        }

        @Test("A session that the server refuses is no sign-out: what is pending goes once the user signs in again")
        func refusedSession() async throws {
            let node = try await Cloud.shared.node()
            let sessions = try await node.sessions(2)
            let ada = Device(CKContainer(configuration: sessions[0].configuration).privateCloudDatabase)
            try await ada.save("a", "1")
            _ = try await node.client.admin("DELETE", "tokens?id=\(sessions[0].id)")
            #expect(await failure { try await ada.save("a", "2") }?.code == .notAuthenticated)
            #expect(await failure { try await ada.engine.fetchChanges() }?.code == .notAuthenticated)
            #expect(!ada.told.contains("signOut"))
            #expect(ada.engine.state.pendingRecordZoneChanges.count == 1)
            await ada.storeState()
            let again = Device(
                CKContainer(configuration: sessions[1].configuration).privateCloudDatabase, like: ada)
            try await again.engine.sendChanges()
            #expect(again.told.contains("records +1 -0 !0"))

            var nobody = sessions[1].configuration
            nobody.webAuthToken = nil
            await again.storeState()
            let out = Device(CKContainer(configuration: nobody).privateCloudDatabase, like: again)
            try await out.engine.fetchChanges()
            #expect(out.told == ["signOut", "state"])
        }

        @Test("A user who signs in while changes are sent gets none of them")
        func otherUserMeanwhile() async throws {
            let node = try await Cloud.shared.node()
            let (ada, bob) = (try await node.user(), try await node.user())
            let file = URL(filePath: NSTemporaryDirectory() + "session-\(CloudNode.unique()).token")
            defer { try? FileManager.default.removeItem(at: file) }
            let signIn = { @Sendable (user: ZonekeeperConfiguration) in
                try? Data((user.webAuthToken ?? "").utf8).write(to: file, options: .atomic)
            }
            var configuration = ada
            (configuration.webAuthToken, configuration.webAuthTokenFile) = (nil, file.path)
            signIn(ada)
            let container = CKContainer(configuration: configuration)
            let device = Device(container.privateCloudDatabase)
            device.whileHandling = { [weak device] _ in
                guard device?.told == ["signIn", "state"] else { return }
                signIn(bob)
                // Another part of the app is the first that learns of the new user.
                _ = try? await container.accountStatus()
            }
            #expect(await failure { try await device.save("a", "1") }?.code == .notAuthenticated)
            #expect(device.told == ["signIn", "state", "willSend", "didSend"])
            let bobs = CKContainer(configuration: bob).privateCloudDatabase
            #expect(try await bobs.allRecordZones().map(\.zoneID) == [.default])
            try await device.engine.sendChanges()
            #expect(device.told.suffix(2) == ["switchAccounts", "state"])
        }

        @Test("Cancelling does not reach the delegate: what it stores while it handles an event is not told again")
        func cancelledInEvent() async throws {
            let container = try await Cloud.container()
            let (ada, bob) = (Device(container.privateCloudDatabase), Device(container.privateCloudDatabase))
            try await ada.save("a", "1")
            let cancelled = Log<Bool>()
            bob.whileHandling = { engine in
                await engine.cancelOperations()
                cancelled.add(Task.isCancelled)
            }
            #expect(await failure { try await bob.engine.fetchChanges() }?.code == .operationCancelled)
            #expect(!cancelled.all.isEmpty && !cancelled.all.contains(true))
            bob.whileHandling = nil
            try await bob.engine.fetchChanges()
            #expect(bob.texts == ["a": "1"])
        }

        @Test("A zone that was deleted and made again is told as deleted: its old records are gone")
        func madeAgain() async throws {
            let container = try await Cloud.container()
            let (ada, bob) = (Device(container.privateCloudDatabase), Device(container.privateCloudDatabase))
            try await ada.save("a", "1")
            try await bob.engine.fetchChanges()
            try await container.privateCloudDatabase.deleteRecordZone(withID: Self.zone)
            try await container.privateCloudDatabase.save(CKRecordZone(zoneID: Self.zone))
            try await container.privateCloudDatabase.save(note(1, in: Self.zone))
            try await bob.engine.fetchChanges()
            #expect(bob.texts.keys.sorted() == ["note-1"])
        }

        @Test("Zones that were deleted before a token that is no longer valid are told as deleted")
        func deletedLongAgo() async throws {
            let container = try await Cloud.container()
            let (ada, bob) = (Device(container.privateCloudDatabase), Device(container.privateCloudDatabase))
            try await ada.save("a", "1")
            try await bob.engine.fetchChanges()
            try await container.privateCloudDatabase.deleteRecordZone(withID: Self.zone)
            bob.engine.state.update { $0.databaseToken = CKServerChangeToken("long ago") }
            try await bob.engine.fetchChanges()
            #expect(bob.told.contains("database +0 -1"))
            #expect(bob.texts.isEmpty)
        }
    }
}
