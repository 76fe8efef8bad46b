import CloudKit

/// The public restaurants: fetched with the convenience API or with operations, and saved with a completion handler.
class RestaurantCloudStore {
    var restaurants: [CKRecord] = []
    var cursor: CKQueryOperation.Cursor?

    func fetchRestaurants() async throws {
        let cloudContainer = CKContainer.default()
        let publicDatabase = cloudContainer.publicCloudDatabase
        let predicate = NSPredicate(value: true)
        let query = CKQuery(recordType: "Restaurant", predicate: predicate)
        query.sortDescriptors = [NSSortDescriptor(key: "creationDate", ascending: false)]

        let results = try await publicDatabase.records(matching: query)

        for record in results.matchResults {
            self.restaurants.append(try record.1.get())
        }
    }

    func fetchRestaurantsWithOperational(completion: @escaping (Error?) -> Void) {
        let cloudContainer = CKContainer.default()
        let publicDatabase = cloudContainer.publicCloudDatabase
        let predicate = NSPredicate(value: true)
        let query = CKQuery(recordType: "Restaurant", predicate: predicate)
        query.sortDescriptors = [NSSortDescriptor(key: "creationDate", ascending: false)]

        let queryOperation = CKQueryOperation(query: query)
        queryOperation.desiredKeys = ["name", "image"]
        queryOperation.queuePriority = .veryHigh
        queryOperation.resultsLimit = 50
        run(queryOperation, on: publicDatabase, completion: completion)
    }

    /// The next fifty, from where the last fetch ended.
    func fetchMoreRestaurants(completion: @escaping (Error?) -> Void) {
        guard let cursor = cursor else {
            completion(nil)
            return
        }
        let queryOperation = CKQueryOperation(cursor: cursor)
        queryOperation.desiredKeys = ["name", "image"]
        queryOperation.resultsLimit = 50
        run(queryOperation, on: CKContainer.default().publicCloudDatabase, completion: completion)
    }

    private func run(
        _ queryOperation: CKQueryOperation, on database: CKDatabase, completion: @escaping (Error?) -> Void
    ) {
        queryOperation.recordMatchedBlock = { (recordID, result) -> Void in
            DispatchQueue.main.async {
                if let _ = self.restaurants.first(where: { $0.recordID == recordID }) {
                    return
                }
                if let restaurant = try? result.get() {
                    self.restaurants.append(restaurant)
                }
            }
        }
        queryOperation.queryResultBlock = { [unowned self] result in
            DispatchQueue.main.async {
                switch result {
                case .failure(let error):
                    completion(error)
                case .success(let cursor):
                    self.cursor = cursor
                    completion(nil)
                }
            }
        }
        database.add(queryOperation)
    }

    func saveRecordToCloud(restaurant: Restaurant, completion: @escaping (Result<CKRecord, Error>) -> Void) {
        let record = CKRecord(recordType: "Restaurant")
        record.setValue(restaurant.name, forKey: "name")
        record.setValue(restaurant.type, forKey: "type")
        record.setValue(restaurant.location, forKey: "location")
        record.setValue(restaurant.phone, forKey: "phone")
        record.setValue(restaurant.description, forKey: "description")

        // An asset is made of a file, which may go once the record is saved.
        var imageFileURL: URL?
        if let image = restaurant.image {
            let url = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
            do {
                try image.write(to: url)
            } catch {
                completion(.failure(error))
                return
            }
            record.setValue(CKAsset(fileURL: url), forKey: "image")
            imageFileURL = url
        }

        let publicDatabase = CKContainer.default().publicCloudDatabase
        publicDatabase.save(
            record,
            completionHandler: { (record, error) -> Void in
                if let imageFileURL = imageFileURL {
                    try? FileManager.default.removeItem(at: imageFileURL)
                }
                if let record = record {
                    completion(.success(record))
                } else {
                    completion(.failure(error!))
                }
            })
    }

    func getImageURL(restaurant: CKRecord) -> URL? {
        guard let image = restaurant.object(forKey: "image"),
            let imageAsset = image as? CKAsset
        else {
            return nil
        }
        return imageAsset.fileURL
    }
}
