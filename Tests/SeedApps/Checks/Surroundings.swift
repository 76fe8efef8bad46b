import CloudKit

/// What checks run in: a cluster, a container, two users with a session each, and the administrator's command line.
struct Surroundings {
    /// The user that the environment names. Every check starts with this one.
    let ada: ZonekeeperConfiguration
    /// Another user of the container.
    let bob: ZonekeeperConfiguration
    /// What every record of this run has in its name or text, so that runs do not meet.
    let run: String
    /// The picture that the sample data of `scripts/up` carry too.
    let picture: Data

    /// Nobody: the same container, without a session.
    var nobody: ZonekeeperConfiguration {
        var configuration = ada
        configuration.webAuthToken = nil
        configuration.webAuthTokenFile = nil
        return configuration
    }

    init(otherUserToken: String, run: String) throws {
        // Says what is wrong with it, where `current` would be nil.
        ada = try ZonekeeperConfiguration(variables: ProcessInfo.processInfo.environment)
        var bob = ada
        bob.webAuthToken = otherUserToken
        bob.webAuthTokenFile = nil
        self.bob = bob
        self.run = run
        picture = try Data(contentsOf: URL(fileURLWithPath: "scripts/sample/andorra.png"))
    }

    /// Does something as another user, as if the app had been started anew.
    @discardableResult
    func acting<Value>(
        as configuration: ZonekeeperConfiguration, _ body: () async throws -> Value
    ) async throws -> Value {
        ZonekeeperConfiguration.use(configuration)
        defer { ZonekeeperConfiguration.use(ada) }
        return try await body()
    }
}

extension Surroundings {
    /// Runs something with the picture as a file, which goes.
    func withPictureFile(_ body: (URL) async throws -> Void) async throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try picture.write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        try await body(file)
    }

    /// Deletes what runs before this one may have left, or this one has made.
    func clean() async throws {
        for account in [ada, bob] {
            try await acting(as: account) {
                let container = CKContainer.default()
                let database = container.publicCloudDatabase
                for type in ["Restaurant", "Establishment", "Task", "CD_Entry"] {
                    try await deleteOwn(type, in: database, of: container)
                }
                try await deleteOwn("Fasting", in: container.privateCloudDatabase, of: container)
                try await deleteOwn("Specimen", in: container.privateCloudDatabase, of: container)
                for subscription in try await container.privateCloudDatabase.allSubscriptions() {
                    try await container.privateCloudDatabase.deleteSubscription(withID: subscription.subscriptionID)
                }
                for zone in try await container.privateCloudDatabase.allRecordZones()
                where zone.zoneID.zoneName != CKRecordZone.ID.defaultZoneName {
                    try await container.privateCloudDatabase.deleteRecordZone(withID: zone.zoneID)
                }
            }
        }
    }

    private func deleteOwn(_ type: String, in database: CKDatabase, of container: CKContainer) async throws {
        let me = try await container.userRecordID()
        var (results, cursor) = try await database.records(
            matching: CKQuery(recordType: type, predicate: NSPredicate(value: true)), desiredKeys: [])
        while true {
            let own = try results.map { try $0.1.get() }.filter {
                [me.recordName, CKCurrentUserDefaultName].contains($0.creatorUserRecordID?.recordName)
            }
            for start in stride(from: 0, to: own.count, by: 200) {
                let ids = own[start..<min(start + 200, own.count)].map(\.recordID)
                _ = try await database.modifyRecords(saving: [], deleting: ids, atomically: false)
            }
            guard let next = cursor else { return }
            (results, cursor) = try await database.records(continuingMatchFrom: next, desiredKeys: [])
        }
    }
}
