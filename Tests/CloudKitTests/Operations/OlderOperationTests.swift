import Foundation
import RecordModel
import TestSupport
import Testing

@testable import CloudKit

/// What Apple deprecated, through requirements that are not: so its uses give no warnings.
private protocol OlderCalls {
    static func options() -> Bool
    static func badge() async -> CKError?
    static func markedRead() async -> CKError?
    static func notifications(_ container: CKContainer, since token: CKServerChangeToken?) async -> [String]
    static func discovered(_ container: CKContainer) async throws -> [String]
    static func status(_ container: CKContainer) async -> (CKContainer.ApplicationPermissionStatus, CKError?)
}

private enum Older: OlderCalls {
    @available(*, deprecated)
    static func options() -> Bool {
        let zone = CKRecordZone.ID(zoneName: "z")
        let options = CKFetchRecordZoneChangesOperation.ZoneOptions()
        options.resultsLimit = 3
        let operation = CKFetchRecordZoneChangesOperation(
            recordZoneIDs: [zone], optionsByRecordZoneID: [zone: options])
        // The operation's own object, as in Objective-C.
        operation.optionsByRecordZoneID?[zone]?.desiredKeys = ["a"]
        let configuration = operation.configurationsByRecordZoneID?[zone]
        return configuration?.resultsLimit == 3 && configuration?.desiredKeys == ["a"]
    }

    @available(*, deprecated)
    static func badge() async -> CKError? {
        await withCheckedContinuation { continuation in
            let operation = CKModifyBadgeOperation(badgeValue: 1)
            operation.modifyBadgeCompletionBlock = { continuation.resume(returning: $0 as? CKError) }
            operation.start()
        }
    }

    @available(*, deprecated)
    static func markedRead() async -> CKError? {
        await withCheckedContinuation { continuation in
            let operation = CKMarkNotificationsReadOperation(notificationIDsToMarkRead: [])
            operation.markNotificationsReadCompletionBlock = { continuation.resume(returning: $1 as? CKError) }
            operation.start()
        }
    }

    @available(*, deprecated)
    static func notifications(_ container: CKContainer, since token: CKServerChangeToken?) async -> [String] {
        let log = Log<String>()
        let operation = CKFetchNotificationChangesOperation(previousServerChangeToken: token)
        operation.resultsLimit = 2
        operation.configuration.container = container
        operation.notificationChangedBlock = { notification in
            log.add((notification as? CKQueryNotification)?.recordID?.recordName ?? "\(notification.notificationType)")
        }
        await withCheckedContinuation { continuation in
            operation.fetchNotificationChangesCompletionBlock = { token, error in
                log.add("\(token?.value ?? "") \((error as? CKError).map { "\($0.code)" } ?? "")")
                continuation.resume()
            }
            container.add(operation)
        }
        return log.all + ["\(operation.moreComing)"]
    }

    @available(*, deprecated)
    static func discovered(_ container: CKContainer) async throws -> [String] {
        let log = Log<String>()
        let infos = [
            CKUserIdentity.LookupInfo(emailAddress: "a@example.com"), CKUserIdentity.LookupInfo(phoneNumber: "1"),
        ]
        let operation = CKDiscoverUserIdentitiesOperation(userIdentityLookupInfos: infos)
        operation.configuration.container = container
        operation.userIdentityDiscoveredBlock = { identity, info in
            log.add("\(identity.userRecordID?.recordName ?? "") \(info.emailAddress ?? "")")
        }
        await withCheckedContinuation { continuation in
            operation.discoverUserIdentitiesCompletionBlock = { error in
                log.add("end \(error == nil)")
                continuation.resume()
            }
            container.add(operation)
        }
        let found = try await container.userIdentities(forEmailAddresses: ["a@example.com", "b@example.com"])
        for (address, identity) in found { log.add("\(address) \(identity.nameComponents?.givenName ?? "")") }
        log.add("\(try await container.userIdentity(forPhoneNumber: "1") == nil)")
        log.add("\(try await container.allUserIdentitiesFromContacts().count)")
        return log.all
    }

    @available(*, deprecated)
    static func status(_ container: CKContainer) async -> (CKContainer.ApplicationPermissionStatus, CKError?) {
        await withCheckedContinuation { continuation in
            container.requestApplicationPermission(.userDiscoverability) { status, error in
                continuation.resume(returning: (status, error as? CKError))
            }
        }
    }
}

@Suite("What Apple deprecated")
struct OlderOperationTests {
    private var calls: any OlderCalls.Type { Older.self }

    private func running(
        _ answer: @escaping @Sendable (ScriptedRequest) -> ScriptedAnswer, _ body: (CKContainer) async throws -> Void
    ) async throws {
        try await ScriptedServer.running { request, _ in
            answer(request)
        } _: { server in
            try await body(
                CKContainer(
                    configuration: ZonekeeperConfiguration(
                        urls: [server.url], container: "older", apiToken: "a", webAuthToken: UUID().uuidString,
                        patience: .zero)))
        }
    }

    @Test("Options of zones are a class of their own, and change the operation's configurations")
    func options() {
        let hasBoth = calls.options()
        #expect(hasBoth)
    }

    @Test("An operation for badges says that there are none on the server")
    func badge() async {
        let error = await calls.badge()
        #expect(error?.code == .serverRejectedRequest && error?.localizedDescription.contains("badges") == true)
    }

    @Test("Notifications come from the user's log a page at a time; nobody marks them as read")
    func notifications() async throws {
        let query = #"{"qry": {"sid": "s", "rid": "a", "zid": "z", "zoid": "_me", "fo": 1, "dbs": 2}, "ce": 2}"#
        let database = #"{"met": {"sid": "s", "zid": "z", "zoid": "_me", "dbs": 1}, "ce": 2}"#
        try await running { request in
            guard let body = try? JSONParser.parse(request.body), request.path.hasSuffix("/changes") else {
                return ScriptedAnswer(body: "{}")
            }
            guard body["syncToken"]?.string == "t1", body["resultsLimit"] == .integer(2) else {
                let expired = #"{"serverErrorCode": "BAD_REQUEST", "reason": "", "detail": "expiredSyncToken"}"#
                return ScriptedAnswer(status: 400, body: expired)
            }
            let entries = [query, database].enumerated().map {
                #"{"seq": \#($0), "time": 1, "payload": {"aps": {}, "ck": \#($1)}}"#
            }
            return ScriptedAnswer(
                body: #"{"notifications": [\#(entries.joined(separator: ","))], "syncToken": "t2", "moreComing": true}"#
            )
        } _: { container in
            let page = await calls.notifications(container, since: CKServerChangeToken("t1"))
            #expect(page == ["a", "\(CKNotification.NotificationType.database)", "t2 ", "true"])
            #expect(await calls.notifications(container, since: nil) == [" changeTokenExpired", "false"])
        }
        #expect(await calls.markedRead()?.code == .serverRejectedRequest)
    }

    @Test("Users who may be found are found by address; others are left out")
    func discover() async throws {
        let found =
            #"{"userRecordName":"_a","nameComponents":{"givenName":"Ada"},"lookupInfo":{"emailAddress":"a@example.com"}}"#
        try await running { request in
            guard request.path.hasSuffix("public/users/discover") else {
                return ScriptedAnswer(body: #"{"userRecordName":"_me","users":[]}"#)
            }
            let infos = (try? JSONParser.parse(request.body))?["lookupInfos"]?.array ?? []
            let hasAda = infos.contains { $0["emailAddress"]?.string == "a@example.com" }
            return ScriptedAnswer(body: #"{"users":[\#(hasAda ? found : "")]}"#)
        } _: { container in
            let found = try await calls.discovered(container)
            #expect(found == ["_a a@example.com", "end true", "a@example.com Ada", "true", "0"])
        }
    }

    @Test(
        "The permission to be found is what the server says of the user",
        arguments: [
            (#"{"userRecordName":"_u","discoverable":true}"#, CKContainer.ApplicationPermissionStatus.granted),
            (#"{"userRecordName":"_u","discoverable":false}"#, .denied), (#"{"userRecordName":"_u"}"#, .denied),
        ])
    func permission(answer: String, status: CKContainer.ApplicationPermissionStatus) async throws {
        try await running { _ in
            ScriptedAnswer(body: answer)
        } _: { container in
            let result = await calls.status(container)
            #expect(result.0 == status && result.1 == nil)
        }
    }

    @Test("A permission that the server cannot be asked about could not be completed")
    func permissionUnknown() async {
        let container = CKContainer(
            configuration: ZonekeeperConfiguration(
                urls: ["https://127.0.0.1:1"], container: "c", apiToken: "t", webAuthToken: "u", patience: .zero))
        let result = await calls.status(container)
        #expect(result.0 == .couldNotComplete && result.1 != nil)
    }

    @Test("The older blocks of sharing's operations get the error that sharing is not built")
    func sharing() async {
        let log = Log<CKError.Code?>()
        let metadata = CKFetchShareMetadataOperation(shareURLs: [])
        metadata.fetchShareMetadataCompletionBlock = { log.add(($0 as? CKError)?.code) }
        let accept = CKAcceptSharesOperation(shareMetadatas: [])
        accept.acceptSharesCompletionBlock = { log.add(($0 as? CKError)?.code) }
        let participants = CKFetchShareParticipantsOperation(userIdentityLookupInfos: [])
        participants.fetchShareParticipantsCompletionBlock = { log.add(($0 as? CKError)?.code) }
        for operation in [metadata, accept, participants] as [CKOperation] {
            await withCheckedContinuation { continuation in
                operation.completionBlock = { continuation.resume() }
                operation.start()
            }
        }
        #expect(log.all == [.serverRejectedRequest, .serverRejectedRequest, .serverRejectedRequest])
    }

    @Test("A group of operations survives an archive, with its ID and its configuration")
    func group() throws {
        let group = CKOperationGroup()
        (group.name, group.quantity) = ("import", 12)
        (group.expectedSendSize, group.expectedReceiveSize) = (.megabytes, .kilobytes)
        group.defaultConfiguration.timeoutIntervalForResource = 9
        let data = try NSKeyedArchiver.archivedData(withRootObject: group, requiringSecureCoding: true)
        let again = try #require(try NSKeyedUnarchiver.unarchivedObject(ofClass: CKOperationGroup.self, from: data))
        #expect(again.operationGroupID == group.operationGroupID && again.name == "import" && again.quantity == 12)
        #expect(again.expectedSendSize == .megabytes && again.expectedReceiveSize == .kilobytes)
        #expect(again.defaultConfiguration.timeoutIntervalForResource == 9)
    }
}
