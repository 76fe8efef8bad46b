import CloudKit

extension PeopleRows {
    static let preferences: [SeedRow] = [
        .run(78, "NSUbiquitousKeyValueStore: set, synchronize, string") { surroundings in
            let preferences = Preferences()
            preferences.setFavoriteColor("blue \(surroundings.run)")
            try expectEqual(preferences.favoriteColor, "blue \(surroundings.run)", "the color")
            try expectEqual(Preferences().favoriteColor, "blue \(surroundings.run)", "the color, in another view")
            let store = NSUbiquitousKeyValueStore.default
            try await store.synchronizeNow()
            store.removeObject(forKey: "favoriteColor")
            try expect(preferences.favoriteColor == nil, "no color")
            try await store.synchronizeNow()
        },
        .run(79, "limits of preferences, and a user's devices share them") { surroundings in
            try await devicesShare(surroundings)
            try await limitsHold()
        },
    ]

    private static func devicesShare(_ surroundings: Surroundings) async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        let store = NSUbiquitousKeyValueStore.default
        store.set("from here \(surroundings.run)", forKey: "shared")
        try await store.synchronizeNow()
        let second = try CommandLineTool.device("get", "shared", folder: folder)
        try expectEqual(second.output, "from here \(surroundings.run)\n", "what the second device reads: \(second)")

        let change: Notification = try await changeElsewhere {
            let written = try CommandLineTool.device("set", "shared", "from there", folder: folder)
            try expectEqual(written.status, 0, "the second device's write: \(written)")
        }
        let keys = change.userInfo?[NSUbiquitousKeyValueStoreChangedKeysKey] as? [String]
        let reason = change.userInfo?[NSUbiquitousKeyValueStoreChangeReasonKey] as? Int
        try expectEqual(keys, ["shared"], "the keys that changed")
        try expectEqual(reason, NSUbiquitousKeyValueStoreServerChange, "the reason")
        try expectEqual(store.string(forKey: "shared"), "from there", "what this device reads")

        let other = try CommandLineTool.device(
            "get", "shared", folder: folder.appendingPathComponent("other"),
            changing: ["ZONEKEEPER_WEB_AUTH_TOKEN": surroundings.bob.webAuthToken])
        try expectEqual(other.output, "\n", "what another user's device reads: \(other)")
        store.removeObject(forKey: "shared")
        try await store.synchronizeNow()
    }

    /// Does something, and waits for the notification that the store changed by it.
    private static func changeElsewhere(_ body: () throws -> Void) async throws -> Notification {
        let (changes, continuation) = AsyncStream.makeStream(of: Passed<Notification>.self)
        let observer = NotificationCenter.default.addObserver(
            forName: NSUbiquitousKeyValueStore.didChangeExternallyNotification, object: nil, queue: nil
        ) { continuation.yield(Passed(value: $0)) }
        defer { NotificationCenter.default.removeObserver(observer) }
        try body()
        for await change in changes { return change.value }
        throw CheckFailure("the store told of no change", line: #line, file: #fileID)
    }

    private static func limitsHold() async throws {
        let store = NSUbiquitousKeyValueStore.default
        let longest = String(repeating: "é", count: 32)
        store.set(true, forKey: longest)
        store.set(true, forKey: longest + "x")
        try expect(store.bool(forKey: longest), "a key of 64 bytes")
        try expect(!store.bool(forKey: longest + "x"), "no key of 65 bytes")
        store.removeObject(forKey: longest)

        let half = Data(repeating: 1, count: 600_000)
        store.set(half, forKey: "first")
        try await store.synchronizeNow()
        store.set(half, forKey: "second")
        try? await store.synchronizeNow()
        try expectEqual(store.data(forKey: "first"), half, "600,000 bytes")
        try expect(store.data(forKey: "second") == nil, "no 600,000 bytes more")
        store.removeObject(forKey: "first")

        for number in 0..<1024 { store.set(Int64(number), forKey: "key \(number)") }
        try await store.synchronizeNow()
        store.set(Int64(1024), forKey: "key 1024")
        try? await store.synchronizeNow()
        try expectEqual(store.longLong(forKey: "key 1023"), 1023, "the 1,024th key")
        try expect(store.object(forKey: "key 1024") == nil, "no 1,025th key")
        for number in 0..<1025 { store.removeObject(forKey: "key \(number)") }
        try await store.synchronizeNow()
    }
}
