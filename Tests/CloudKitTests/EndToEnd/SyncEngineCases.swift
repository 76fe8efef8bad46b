import Foundation
import TestSupport
import Testing

@testable import CloudKit

extension EndToEnd {
    @Suite("Sync engine", .timeLimit(.minutes(10)))
    struct SyncEngineCases {
        private static let zone = CKRecordZone.ID(zoneName: "Notes")

        @Test("The first start tells the user, then zones go before records, and the state follows what was told")
        func firstSend() async throws {
            let device = Device(try await Cloud.container().privateCloudDatabase)
            device.engine.state.add(pendingRecordZoneChanges: [.saveRecord(device.write("a", "1"))])
            try await device.engine.sendChanges()
            #expect(
                device.told == [
                    "signIn", "state", "willSend", "zones +1 -0 !0", "state", "records +1 -0 !0", "state", "didSend",
                ])
            #expect(device.engine.state.pendingRecordZoneChanges.isEmpty)
            #expect(device.engine.state.pendingDatabaseChanges.isEmpty)
        }

        @Test("444 records go in one send, in three batches, and another device gets them all")
        func manyRecords() async throws {
            let container = try await Cloud.container()
            let (ada, bob) = (Device(container.privateCloudDatabase), Device(container.privateCloudDatabase))
            ada.engine.state.add(
                pendingRecordZoneChanges: (0..<444).map { .saveRecord(ada.write("note-\($0)", "\($0)")) })
            try await ada.engine.sendChanges()
            #expect(
                ada.told.filter { $0.hasPrefix("records") } == [
                    "records +200 -0 !0", "records +200 -0 !0", "records +44 -0 !0",
                ])
            try await bob.engine.fetchChanges()
            #expect(bob.texts == ada.texts && bob.texts.count == 444)
        }

        @Test("A conflict brings the server's record, throws, and the change that was mended goes with the next send")
        func conflict() async throws {
            let container = try await Cloud.container()
            let (ada, bob) = (Device(container.privateCloudDatabase), Device(container.privateCloudDatabase))
            try await ada.save("a", "first")
            try await bob.engine.fetchChanges()
            try await ada.save("a", "ada's")
            #expect(await failure { try await bob.save("a", "bob's") }?.code == .partialFailure)
            #expect(bob.engine.state.pendingRecordZoneChanges.count == 1)
            try await bob.engine.sendChanges()
            try await ada.engine.fetchChanges()
            #expect(ada.texts == ["a": "bob's"] && bob.texts == ada.texts)
        }

        @Test("A record in a zone that is gone fails; zone and record go with the next send")
        func zoneGone() async throws {
            let device = Device(try await Cloud.container().privateCloudDatabase)
            try await device.save("a", "1")
            try await device.engine.database.deleteRecordZone(withID: Self.zone)
            #expect(await failure { try await device.save("a", "2") }?.code == .partialFailure)
            try await device.engine.sendChanges()
            let record = try await device.engine.database.record(
                for: CKRecord.ID(recordName: "a", zoneID: Self.zone))
            #expect(record["text"] as? String == "2")
        }

        @Test("Without network a change stays pending, and an engine that begins with the state sends it")
        func networkLoss() async throws {
            let configuration = try await Cloud.shared.node().user()
            let ada = Device(CKContainer(configuration: configuration).privateCloudDatabase)
            try await ada.save("a", "1")
            var broken = configuration
            broken.urls = ["https://127.0.0.1:9"]
            broken.patience = .zero
            let offline = Device(CKContainer(configuration: broken).privateCloudDatabase, like: ada)
            #expect(await failure { try await offline.save("a", "2") }?.code == .networkUnavailable)
            #expect(offline.engine.state.pendingRecordZoneChanges.count == 1)
            await offline.storeState()
            let online = Device(CKContainer(configuration: configuration).privateCloudDatabase, like: offline)
            try await online.engine.sendChanges()
            #expect(online.told.contains("records +1 -0 !0"))
        }

        @Test("What a stored state knows is not fetched again, and pending changes are still there")
        func restart() async throws {
            let container = try await Cloud.container()
            let (ada, bob) = (Device(container.privateCloudDatabase), Device(container.privateCloudDatabase))
            try await ada.save("a", "1")
            try await bob.engine.fetchChanges()
            bob.engine.state.add(pendingRecordZoneChanges: [.saveRecord(bob.write("b", "2"))])
            await bob.storeState()
            let again = Device(container.privateCloudDatabase, like: bob)
            try await again.engine.fetchChanges()
            #expect(again.told == ["willFetch", "didFetch"])
            try await again.engine.sendChanges()
            try await ada.engine.fetchChanges()
            #expect(ada.texts == ["a": "1", "b": "2"])
        }

        @Test("A fetch of some zones leaves the others for later; a deleted zone and record are told")
        func scopes() async throws {
            let container = try await Cloud.container()
            let database = container.privateCloudDatabase
            let device = Device(database)
            let other = CKRecordZone.ID(zoneName: "Other")
            try await database.modifyRecordZones(
                saving: [CKRecordZone(zoneID: Self.zone), CKRecordZone(zoneID: other)], deleting: [])
            try await database.save(note(1, in: Self.zone))
            try await database.save(note(2, in: other))
            try await device.engine.fetchChanges(.init(scope: .zoneIDs([other])))
            #expect(device.texts.keys.sorted() == ["note-2"])
            #expect(device.engine.state.zoneIDsWithUnfetchedServerChanges == [Self.zone])
            try await device.engine.fetchChanges()
            #expect(device.texts.keys.sorted() == ["note-1", "note-2"])
            try await database.deleteRecord(withID: note(2, in: other).recordID)
            try await database.deleteRecordZone(withID: Self.zone)
            try await device.engine.fetchChanges()
            #expect(device.texts.isEmpty)
            #expect(device.told.contains("database +1 -1"))
            // A zone that is gone can be deleted once more.
            device.engine.state.add(pendingDatabaseChanges: [.deleteZone(Self.zone)])
            try await device.engine.sendChanges()
            #expect(device.told.contains("zones +0 -1 !0"))
        }

        @Test("Another user's state is given up with one event, and nothing of it is sent")
        func otherUser() async throws {
            let node = try await Cloud.shared.node()
            let ada = Device(CKContainer(configuration: try await node.user()).privateCloudDatabase)
            try await ada.save("a", "1")
            ada.engine.state.add(pendingRecordZoneChanges: [.saveRecord(ada.write("b", "2"))])
            await ada.storeState()
            let bob = Device(CKContainer(configuration: try await node.user()).privateCloudDatabase, like: ada)
            try await bob.engine.sendChanges()
            #expect(bob.told == ["switchAccounts", "state"])
            #expect(!bob.engine.state.hasPending)
        }

        @Test("A zone whose owner is named is saved once, and deleted once")
        func namedOwner() async throws {
            let container = try await Cloud.container()
            let device = Device(container.privateCloudDatabase)
            let owner = try await container.userRecordID().recordName
            let zone = CKRecordZone(zoneID: CKRecordZone.ID(zoneName: "Other", ownerName: owner))
            device.whileHandling = { [weak device] engine in
                if device?.told.contains("zones +1 -0 !0") == true { await engine.cancelOperations() }
            }
            device.engine.state.add(pendingDatabaseChanges: [.saveZone(zone)])
            try await device.engine.sendChanges()
            // Together with the device's own.
            #expect(device.told.filter { $0.hasPrefix("zones") } == ["zones +2 -0 !0"])
            device.engine.state.add(pendingDatabaseChanges: [.deleteZone(zone.zoneID)])
            try await device.engine.sendChanges()
            #expect(device.told.filter { $0.hasPrefix("zones") } == ["zones +2 -0 !0", "zones +0 -1 !0"])
            #expect(!device.engine.state.hasPending)
        }

        @Test("In a batch that is atomic by zone, one failure fails the others")
        func atomic() async throws {
            let container = try await Cloud.container()
            let (ada, bob) = (Device(container.privateCloudDatabase), Device(container.privateCloudDatabase))
            try await ada.save("a", "1")
            bob.isAtomic = true
            let changes: [CKSyncEngine.PendingRecordZoneChange] = ["a", "b"].map { .saveRecord(bob.write($0, "x")) }
            bob.engine.state.add(pendingRecordZoneChanges: changes)
            #expect(await failure { try await bob.engine.sendChanges() }?.code == .partialFailure)
            #expect(bob.errors == ["a": .serverRecordChanged, "b": .batchRequestFailed])
        }

        @Test("A record that is not there is skipped and stays pending; a change outside of the scope is refused")
        func batches() async throws {
            let device = Device(try await Cloud.container().privateCloudDatabase)
            let id = CKRecord.ID(recordName: "absent", zoneID: Self.zone)
            device.engine.state.add(pendingRecordZoneChanges: [.saveRecord(id)])
            try await device.engine.sendChanges()
            #expect(device.engine.state.pendingRecordZoneChanges == [.saveRecord(id)])
            device.engine.state.add(pendingRecordZoneChanges: [.saveRecord(device.write("a", "1"))])
            device.minds = { _ in true }
            let other = CKSyncEngine.SendChangesOptions(scope: .recordIDs([id]))
            #expect(await failure { try await device.engine.sendChanges(other) }?.code == .invalidArguments)
            #expect(await failure { try await device.engine.sendChanges() } == nil)
        }

        @Test("A record that is changed while it is sent is sent once more")
        func changedMeanwhile() async throws {
            let device = Device(try await Cloud.container().privateCloudDatabase)
            device.whenSent = { [weak device] in
                guard let device, device.texts["a"] == "1" else { return }
                device.engine.state.add(pendingRecordZoneChanges: [.saveRecord(device.write("a", "2"))])
            }
            try await device.save("a", "1")
            #expect(device.told.filter { $0 == "records +1 -0 !0" }.count == 2)
            #expect(device.engine.state.pendingRecordZoneChanges.isEmpty)
            let record = try await device.engine.database.record(for: CKRecord.ID(recordName: "a", zoneID: Self.zone))
            #expect(record["text"] as? String == "2")
        }

        @Test("Events come one at a time, and the delegate cannot wait for its own engine")
        func oneAtATime() async throws {
            let device = Device(try await Cloud.container().privateCloudDatabase)
            let refusals = Log<CKError.Code?>()
            device.whileHandling = { engine in refusals.add(await failure { try await engine.fetchChanges() }?.code) }
            device.engine.state.add(pendingRecordZoneChanges: [.saveRecord(device.write("a", "1"))])
            async let sent: Void = device.engine.sendChanges()
            async let fetched: Void = device.engine.fetchChanges()
            async let again: Void = device.engine.fetchChanges()
            _ = try await (sent, fetched, again)
            #expect(!device.didOverlap)
            #expect(!refusals.all.isEmpty && refusals.all.allSatisfy { $0 == .invalidArguments })
        }

        @Test("A child task of the delegate cannot wait for the engine either; a task of its own can")
        func childTasks() async throws {
            let device = Device(try await Cloud.container().privateCloudDatabase)
            let refusals = Log<CKError.Code?>()
            let own = Log<Task<CKError?, Never>>()
            device.whileHandling = { engine in
                async let fetched = failure { try await engine.fetchChanges() }
                refusals.add(await fetched?.code)
                await withTaskGroup(of: CKError?.self) { group in
                    group.addTask { await failure { try await engine.sendChanges() } }
                    for await error in group { refusals.add(error?.code) }
                }
                if own.all.isEmpty { own.add(Task { await failure { try await engine.fetchChanges() } }) }
            }
            try await device.save("a", "1")
            #expect(refusals.all.count >= 2 && refusals.all.allSatisfy { $0 == .invalidArguments })
            #expect(await own.all.first?.value == nil && !own.all.isEmpty)
        }

        @Test("Cancelling one of two that fetch leaves the other's fetch alone")
        func cancelledFetch() async throws {
            let device = Device(try await Cloud.container().privateCloudDatabase)
            let (entered, enter) = AsyncStream.makeStream(of: Void.self)
            let (gate, open) = AsyncStream.makeStream(of: Void.self)
            device.whileHandling = { _ in
                enter.yield()
                for await _ in gate { return }
            }
            let first = Task { await failure { try await device.engine.fetchChanges() }?.code }
            for await _ in entered { break }
            let second = Task.immediate { await failure { try await device.engine.fetchChanges() }?.code }
            first.cancel()
            #expect(await first.value == .operationCancelled)
            open.finish()
            #expect(await second.value == nil)
            #expect(device.told.count(where: { $0 == "didFetch" }) == 1)
        }

        @Test("The delegate is asked before each request, its group says how, and a zone it leaves out comes later")
        func fetchOptions() async throws {
            let container = try await Cloud.container()
            let (ada, bob) = (Device(container.privateCloudDatabase), Device(container.privateCloudDatabase))
            ada.engine.state.add(pendingRecordZoneChanges: (0..<444).map { .saveRecord(ada.write("n\($0)", "")) })
            try await ada.engine.sendChanges()
            let asked = Log<Void>()
            bob.fetchOptions = { context in
                asked.add(())
                // The database's changes, and one page of the zone's.
                return asked.all.count <= 2 ? context.options : .init(scope: .zoneIDs([]))
            }
            try await bob.engine.fetchChanges()
            #expect(bob.engine.state.zoneIDsWithUnfetchedServerChanges == [Self.zone])
            #expect(asked.all.count == 3 && !bob.texts.isEmpty && bob.texts.count < 444)
            bob.fetchOptions = { context in
                asked.add(())
                return context.options
            }
            let before = bob.told.count
            try await bob.engine.fetchChanges()
            #expect(bob.texts == ada.texts)
            let pages = bob.told.dropFirst(before).count { $0.hasPrefix("fetched") }
            #expect(asked.all.count == 3 + 1 + pages)
            bob.fetchOptions = { _ in
                let group = CKOperationGroup()
                group.defaultConfiguration.timeoutIntervalForResource = 0
                return .init(operationGroup: group)
            }
            #expect(await failure { try await bob.engine.fetchChanges() }?.code == .networkFailure)
        }

        @Test("An engine's first start does not read what the log of notifications keeps")
        func firstStart() async throws {
            let (one, other) = try await Cloud.devices()
            try await one.privateCloudDatabase.save(CKDatabaseSubscription(subscriptionID: "the app's own"))
            let ada = Device(one.privateCloudDatabase)
            try await ada.save("a", "1")
            var kept = other.notifications().makeAsyncIterator()
            // The zone, and the record.
            for _ in 0..<2 { #expect(try await kept.next() != nil) }
            let bob = Device(other.privateCloudDatabase, clock: ManualTime().clock)
            await bob.waitFor("didFetch", times: 2)
            // It listens from the end on, which it knew before its second fetch began.
            let token = try #require(bob.engine.state.current.notificationToken)
            var rest = other.notifications(since: token).makeAsyncIterator()
            try await ada.save("b", "2")
            await bob.waitFor("didFetch", times: 3)
            #expect(try await rest.next()?.sequence == 3)
            #expect(bob.texts == ["a": "1", "b": "2"])
        }

        @Test("A subscription to the database that somebody deleted is made again, and what changed meanwhile fetched")
        func subscriptionDeleted() async throws {
            let database = try await Cloud.container().privateCloudDatabase
            let time = ManualTime()
            let device = Device(database, clock: time.clock)
            await device.waitFor("didFetch", times: 2)
            try await database.deleteSubscription(withID: "zonekeeper-sync-engine")
            await time.advance(to: SyncSchedule.toldFetchInterval)
            await device.waitFor("didFetch", times: 4)
            #expect(try await database.allSubscriptions().map(\.subscriptionID) == ["zonekeeper-sync-engine"])
        }

        @Test("An engine takes no notice of another user's sign-out in the same process")
        func othersSignOut() async throws {
            let (one, other) = try await Cloud.devices()
            let node = try await Cloud.shared.node()
            let leaving = try await node.sessions(1)[0]
            let stranger = CKContainer(configuration: leaving.configuration)
            #expect(try await stranger.accountStatus() == .available)
            // With its zone, which would be a change of its own.
            let ada = Device(one.privateCloudDatabase)
            try await ada.save("a", "1")
            let bob = Device(other.privateCloudDatabase, clock: ManualTime().clock)
            await bob.waitFor("didFetch", times: 2)
            _ = try await node.client.admin("DELETE", "tokens?id=\(leaving.id)")
            #expect(try await stranger.accountStatus() == .noAccount)
            try await ada.save("b", "2")
            await bob.waitFor("fetched +1 -0", times: 2)
            // The first, the one after it began to listen, and the one that the notification asked for.
            #expect(bob.texts == ["a": "1", "b": "2"] && bob.told.count { $0 == "willFetch" } == 3)
        }

        @Test("An engine that syncs by itself tells why it cannot, also where that is no matter of time")
        func unkept() async throws {
            let container = try await Cloud.container()
            let device = Device(container.sharedCloudDatabase, clock: ManualTime().clock)
            await device.waitFor("didFetch")
            #expect(device.failures == [.serverRejectedRequest])
            let other = Device(container.publicCloudDatabase)
            #expect(await failure { try await other.engine.sendChanges() }?.code == .invalidArguments)
            #expect(other.told == ["willSend", "didSend"] && other.failures == [.invalidArguments])
        }

        @Test("Engines that sync by themselves send after half a second, and tell each other in one process")
        func automatic() async throws {
            let database = try await Cloud.container().privateCloudDatabase
            let time = ManualTime()
            let (ada, bob) = (Device(database, clock: time.clock), Device(database, clock: ManualTime().clock))
            // An engine fetches once more when it has begun to listen.
            for device in [ada, bob] { await device.waitFor("didFetch", times: 2) }
            ada.engine.state.add(pendingRecordZoneChanges: [.saveRecord(ada.write("a", "1"))])
            await time.advance(to: SyncSchedule.sendDelay)
            await bob.waitFor("fetched +1 -0")
            #expect(bob.texts == ["a": "1"])
            #expect(try await database.allSubscriptions().map(\.subscriptionID) == ["zonekeeper-sync-engine"])
        }

        @Test("An engine tells the others of its process what it sent, also where a part could not be sent")
        func toldOfPart() async throws {
            let database = try await Cloud.container().privateCloudDatabase
            let time = ManualTime()
            let (ada, bob) = (Device(database, clock: time.clock), Device(database, clock: ManualTime().clock))
            ada.makeBatch = { batch in
                for record in batch?.recordsToSave ?? [] where record.recordID.recordName == "bad" {
                    record.setValue(["key": 1], forKey: "text")
                }
                return batch
            }
            for device in [ada, bob] { await device.waitFor("didFetch", times: 2) }
            let changes: [CKSyncEngine.PendingRecordZoneChange] = ["a", "bad"].map { .saveRecord(ada.write($0, "1")) }
            ada.engine.state.add(pendingRecordZoneChanges: changes)
            await time.advance(to: SyncSchedule.sendDelay)
            await bob.waitFor("fetched +1 -0")
            #expect(bob.texts == ["a": "1"] && ada.errors == ["bad": .invalidArguments])
        }

        @Test("A change on another device wakes an engine, without any time going by")
        func told() async throws {
            let (one, other) = try await Cloud.devices()
            let subscription = CKDatabaseSubscription(subscriptionID: "the app's own")
            try await one.privateCloudDatabase.save(subscription)
            let (ada, bob) = (
                Device(one.privateCloudDatabase), Device(other.privateCloudDatabase, clock: ManualTime().clock)
            )
            await bob.waitFor("didFetch", times: 2)
            try await ada.save("a", "1")
            await bob.waitFor("fetched +1 -0")
            #expect(bob.texts == ["a": "1"])
            #expect(try await other.privateCloudDatabase.allSubscriptions() == [subscription])
            // A state that is stored goes on where it was: what was heard is not heard again.
            await bob.storeState()
            let again = Device(other.privateCloudDatabase, like: bob, clock: ManualTime().clock)
            await again.waitFor("didFetch", times: 2)
            #expect(!again.told.contains("fetched +1 -0"))
            try await ada.save("b", "2")
            await again.waitFor("fetched +1 -0")
            #expect(again.texts == ["a": "1", "b": "2"])
        }

        @Test("What could not be sent or heard while the network was away is made good without the app")
        func networkLost() async throws {
            let (one, other, relay) = try await Cloud.devicesWithRelay()
            try await finishing {
                let ada = Device(one.privateCloudDatabase)
                let bob = Device(other.privateCloudDatabase, clock: .system)
                await bob.waitFor("didFetch", times: 2)
                relay.cut(true)
                try await ada.save("a", "1")
                bob.engine.state.add(pendingRecordZoneChanges: [.saveRecord(bob.write("b", "2"))])
                #expect(await failure { try await bob.engine.sendChanges() } != nil)
                #expect(bob.engine.state.pendingRecordZoneChanges.count == 1)
                relay.cut(false)
                await bob.waitFor(texts: ["a": "1", "b": "2"])
                await bob.waitFor("records +1 -0 !0")
                try await ada.engine.fetchChanges()
                #expect(ada.texts == bob.texts)
            } with: {
                relay.close()
            }
        }
    }
}
