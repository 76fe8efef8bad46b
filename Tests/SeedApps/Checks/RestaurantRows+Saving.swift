import CloudKit

extension RestaurantRows {
    static let saving: [SeedRow] = [
        .run(17, "a new restaurant with its image; the file may go after the save") { surroundings in
            let image = surroundings.picture
            let saved = try await save(sample(surroundings, image: image))
            try expect(saved["image"] is CKAsset, "the record has the asset")
            let url = try need(RestaurantCloudStore().getImageURL(restaurant: saved), "its file's URL")
            try expect(!FileManager.default.fileExists(atPath: url.path), "the app removed its file after the save")
            let fetched = try await CKContainer.default().publicCloudDatabase.record(for: saved.recordID)
            let again = try need(RestaurantCloudStore().getImageURL(restaurant: fetched), "the image")
            try expectEqual(try Data(contentsOf: again), image, "the image's bytes")
            try await remove([saved])
        },
        .run(18, "what one may not do fails with permissionFailure, 10, and its text") { surroundings in
            let notice = CKRecord(recordType: "Notice")
            notice["text"] = "mine"
            let refused = try await expectFailure(.permissionFailure, of: "a type that nobody may create") {
                try await CKContainer.default().publicCloudDatabase.save(notice)
            }
            try expectEqual((refused as NSError).code, 10, "the code")
            try expectEqual((refused as NSError).domain, CKErrorDomain, "the domain")
            let text = String(reflecting: refused)
            try expect(text.contains("\"Permission Failure\" (10"), "its text: \(text)")
            try expect(text.contains("container ID = \"\(surroundings.ada.container)\""), "its container: \(text)")

            let saved = try await save(sample(surroundings))
            try await surroundings.acting(as: surroundings.bob) {
                let database = CKContainer.default().publicCloudDatabase
                let another = try await database.record(for: saved.recordID)
                another["phone"] = "0"
                try await expectFailure(.permissionFailure, of: "another user's record") {
                    try await database.save(another)
                }
            }
            try await remove([saved])
        },
        .run(20, "anybody reads the public database, and users write") { surroundings in
            let saved = try await save(sample(surroundings))
            try await surroundings.acting(as: surroundings.nobody) {
                let store = RestaurantCloudStore()
                try await store.fetchRestaurants()
                try expectEqual(store.restaurants.map(\.recordID), [saved.recordID], "what a visitor reads")
                try await expectFailure(.notAuthenticated, of: "a visitor's save") {
                    try await save(sample(surroundings, number: 1))
                }
            }
            try await remove([saved])
        },
        .run(22, "a saved record is in the next query, of every user") { surroundings in
            for number in 0..<5 {
                let saved = try await save(sample(surroundings, number: number))
                try await surroundings.acting(as: number.isMultiple(of: 2) ? surroundings.ada : surroundings.bob) {
                    let store = RestaurantCloudStore()
                    try await store.fetchRestaurants()
                    try expectEqual(store.restaurants.map(\.recordID), [saved.recordID], "right after save \(number)")
                }
                try await remove([saved])
            }
        },
        .run(25, "the same records over HTTP, as a web page reads them") { surroundings in
            let saved = try await save(sample(surroundings))
            let path = PlainHTTP.path("public", "records/lookup", in: surroundings)
            let answer = try await PlainHTTP.answer(
                "\(path)?ckAPIToken=\(try need(surroundings.ada.apiToken, "the API token"))",
                json: "{\"records\": [{\"recordName\": \"\(saved.recordID.recordName)\"}]}", in: surroundings)
            try expect(answer.status == 200 && answer.body.contains(sample(surroundings).name), "\(answer)")
            try await remove([saved])
        },
    ]
}
