import CloudKit

extension TaskRows {
    static let list: [SeedRow] = [
        .run(83, "the record type Task: its indexes serve a sort and a filter") { surroundings in
            try await withTasks(surroundings) { _, tasks in
                let database = CKContainer.default().publicCloudDatabase
                tasks[1].setObject(1 as __CKRecordObjCValue, forKey: "checked")
                try await database.save(tasks[1])
                let query = CKQuery(recordType: "Task", predicate: NSPredicate(format: "checked = %d", 1))
                query.sortDescriptors = [NSSortDescriptor(key: "createdAt", ascending: true)]
                let found = try await database.records(matching: query).matchResults.map(\.0)
                try expectEqual(found, [tasks[1].recordID], "the tasks that are done")
            }
        },
        .run(86, "fetchTasks: sorted, in the default zone, with a completion handler") { surroundings in
            try await withTasks(surroundings) { service, tasks in
                let (found, error) = await fetch(service)
                try expectEqual(error, .none, "the error")
                try expectEqual(found?.map(\.recordID), tasks.reversed().map(\.recordID), "the newest first")
            }
        },
        .run(87, "an empty list is an answer without records, and no error") { surroundings in
            let service = TaskCloudService(containerIdentifier: surroundings.ada.container)
            let (found, error) = await fetch(service)
            try expect(found == nil && error == .noRecords, "an empty list is told as \(error)")
            let query = CKQuery(recordType: "Task", predicate: NSPredicate(value: true))
            let database = CKContainer.default().publicCloudDatabase
            let (records, failure): ([CKRecord]?, Error?) = await completion { done in
                database.perform(query, inZoneWith: nil) { done(($0, $1)) }
            }
            try expect(failure == nil && records?.isEmpty == true, "an array without elements, and no nil")
        },
        .run(88, "a line's title, time and check mark: String, Date, Int64") { surroundings in
            try await withTasks(surroundings) { service, _ in
                let found = try need(await fetch(service).0, "the tasks")
                let lines = found.map(TaskRow.init)
                try expectEqual(lines.map(\.title), ["Third", "Second", "First"], "the titles")
                let newest = Date(timeIntervalSince1970: 1_767_225_602)
                try expectEqual(lines.first?.createdAt, newest, "the time")
                try expectEqual(found[0].object(forKey: "checked") as? Int64, 0, "the check mark")
            }
        },
        .run(89, "deleteRecord") { surroundings in
            try await withTasks(surroundings) { service, tasks in
                let error: FetchError = await completion { service.deleteRecord(tasks[1], completionHandler: $0) }
                try expectEqual(error, .none, "the error")
                try expectEqual(await fetch(service).0?.count, 2, "the tasks left")
            }
        },
        .run(90, "addTask: values as __CKRecordObjCValue") { surroundings in
            let service = TaskCloudService(containerIdentifier: surroundings.ada.container)
            let (record, error) = await add("Water the plants", to: service)
            try expectEqual(error, .none, "the error")
            let task = try need(record, "the record")
            try expectEqual(TaskRow(record: task).title, "Water the plants", "its title")
            try expect(task.recordChangeTag != nil && task.creationDate != nil, "it was saved")
            try await RestaurantRows.remove([task])
        },
        .run(91, "updateTask: a check mark set, saved and fetched") { surroundings in
            try await withTasks(surroundings) { service, tasks in
                let line = TaskRow(record: try need(await fetch(service).0?.last, "the task"))
                let tag = line.record.recordChangeTag
                line.toggleChecked(at: Date(timeIntervalSince1970: 1_767_225_700))
                let (_, error): (CKRecord?, FetchError) = await completion { done in
                    service.updateTask(line.record) { done(($0, $1)) }
                }
                try expectEqual(error, .none, "the error")
                let again = TaskRow(record: try need(await fetch(service).0?.last, "the task"))
                try expectEqual(again.record.recordID, tasks[0].recordID, "the same task")
                try expect(again.checked, "it is checked")
                try expect(again.record.recordChangeTag != tag, "another change tag")
            }
        },
    ]

    /// Three tasks, a second apart.
    private static func withTasks(
        _ surroundings: Surroundings, _ body: (TaskCloudService, [CKRecord]) async throws -> Void
    ) async throws {
        let service = TaskCloudService(containerIdentifier: surroundings.ada.container)
        var tasks: [CKRecord] = []
        for (second, title) in ["First", "Second", "Third"].enumerated() {
            let (record, error) = await add(title, to: service, at: Double(second))
            tasks.append(try need(record, "the task, for \(error),"))
        }
        try await body(service, tasks)
        _ = try await CKContainer.default().publicCloudDatabase.modifyRecords(
            saving: [], deleting: tasks.map(\.recordID), atomically: false)
    }
}
