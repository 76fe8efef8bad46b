import Testing

@testable import CloudKit

@Suite("How operations are run")
struct OperationConfigurationTests {
    @Test("An operation's own configuration begins as its group's, and is its own from then on")
    func own() {
        let group = CKOperationGroup()
        group.defaultConfiguration.timeoutIntervalForRequest = 7
        let operation = CKQueryOperation()
        #expect(operation.times.request == nil)
        operation.group = group
        #expect(operation.times.request == .seconds(7))
        operation.configuration.timeoutIntervalForRequest = 3
        #expect(operation.times.request == .seconds(3) && group.defaultConfiguration.timeoutIntervalForRequest == 7)
        let set = CKOperation.Configuration()
        operation.configuration = set
        set.timeoutIntervalForRequest = 1
        #expect(operation.configuration.timeoutIntervalForRequest == 60)
        operation.configuration = nil
        #expect(operation.times.request == .seconds(7))
    }

    @Test("Whether files are fetched is an operation's own, its group's, the database's, and else yes")
    func files() {
        let configuration = CKOperation.Configuration()
        #expect(configuration.fetchesAssetFiles && CallTimes(configuration).fetchesFiles == nil)
        configuration.fetchesAssetFiles = false
        #expect((configuration.copy() as? CKOperation.Configuration)?.fetchesAssetFiles == false)
        let database = CKContainer(
            configuration: ZonekeeperConfiguration(urls: ["https://127.0.0.1:1"], container: "c", apiToken: "t")
        ).privateCloudDatabase
        #expect(database.service.fetchesFiles)
        database.configuredWith(configuration: configuration) { database in
            #expect(!database.service.fetchesFiles)
            let operation = CKFetchRecordsOperation()
            operation.database = database
            #expect(!operation.service.fetchesFiles)
            operation.configuration.fetchesAssetFiles = true
            #expect(operation.service.fetchesFiles)
        }
    }

    @Test("A time that is none is none", arguments: [Double.nan, -1, 0])
    func wrongTimes(time: Double) {
        let configuration = CKOperation.Configuration()
        configuration.timeoutIntervalForRequest = time
        configuration.timeoutIntervalForResource = time
        #expect(CallTimes(configuration).request == .zero && CallTimes(configuration).resource == .zero)
        configuration.timeoutIntervalForRequest = .infinity
        #expect(CallTimes(configuration).request == .seconds(31_536_000))
    }

    @Test("The time for all of it counts from the operation's start, and what is over is not sent")
    func resource() async {
        let configuration = CKOperation.Configuration()
        #expect(configuration.timeoutIntervalForResource == 604_800 && CallTimes(configuration).resource == nil)
        configuration.timeoutIntervalForResource = 0
        #expect((configuration.copy() as? CKOperation.Configuration)?.timeoutIntervalForResource == 0)
        // Nobody listens at port 1: with time left the error would be another.
        let container = CKContainer(
            configuration: ZonekeeperConfiguration(
                urls: ["https://127.0.0.1:1"], container: "resource", apiToken: "t", patience: .zero))
        let recordID = CKRecord.ID(recordName: "r")
        let error = await #expect(throws: CKError.self) {
            try await container.privateCloudDatabase.configuredWith(configuration: configuration) { database in
                try await database.record(for: recordID)
            }
        }
        #expect(error?.code == .networkFailure)
        #expect(error?.localizedDescription.contains("timeoutIntervalForResource") == true)
        let operation = CKFetchRecordsOperation(recordIDs: [recordID])
        operation.database = container.privateCloudDatabase
        operation.configuration = configuration
        let failed: CKError? = await withCheckedContinuation { continuation in
            operation.fetchRecordsResultBlock = { continuation.resume(returning: $0.failure as? CKError) }
            operation.start()
        }
        #expect(failed?.code == .networkFailure)
        configuration.timeoutIntervalForResource = 60
        let other = await #expect(throws: CKError.self) {
            try await container.privateCloudDatabase.configuredWith(configuration: configuration) { database in
                try await database.record(for: recordID)
            }
        }
        #expect(other?.code == .networkUnavailable)
    }
}
