import CloudKit

/// The notes tool on two devices of a user.
enum NotesCheck {
    static func copyFollowsServer(_ surroundings: Surroundings) async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        var first = NotesApp(file: folder.appendingPathComponent("first.json"))
        var second = NotesApp(file: folder.appendingPathComponent("second.json"))
        _ = try await first.run(["sort", "title"])
        _ = try await first.run(["add", "Water the plants"])
        let both = try await second.run(["add", "Buy milk", "two litres"])
        try expectEqual(both.map(title), ["Buy milk: two litres", "Water the plants"], "the second device's list")
        try expectEqual(try await first.run(["list"]), both, "the first device's list")

        let milk = try need(both.first.flatMap { $0.split(separator: " ").first.map(String.init) }, "the note's name")
        _ = try await first.run(["edit", milk, "none"])
        let edited = try await second.run(["list"])
        try expectEqual(edited.map(title), ["Buy milk: none", "Water the plants"], "after an edit elsewhere")
        _ = try await first.run(["remove", milk])

        var offline = surroundings.ada
        offline.urls = ["https://127.0.0.1:9"]
        offline.patience = .zero
        try await surroundings.acting(as: offline) {
            var unplugged = NotesApp(file: folder.appendingPathComponent("second.json"))
            let lines = try await unplugged.run(["list"])
            try expectEqual(lines.first, "offline; as of the last time:", "without a network")
            try expectEqual(lines.count, 3, "the copy's notes")
        }
        second = NotesApp(file: folder.appendingPathComponent("second.json"))
        try expectEqual(try await second.run(["list"]).map(title), ["Water the plants"], "with it again")
        try await CKContainer.default().privateCloudDatabase.deleteRecordZone(
            withID: CKRecordZone.ID(zoneName: "notes"))
        NSUbiquitousKeyValueStore.default.removeObject(forKey: "sort")
        try await NSUbiquitousKeyValueStore.default.synchronizeNow()
    }

    private static func title(_ line: String) -> String {
        line.split(separator: " ", maxSplits: 1).last.map { $0.trimmingCharacters(in: .whitespaces) } ?? ""
    }
}
