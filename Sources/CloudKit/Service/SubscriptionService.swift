import Foundation
import RecordModel
import ServiceClient

/// The user's subscriptions to a database.
struct SubscriptionService: Sendable {
    let service: DatabaseService

    /// All of them. One that another program made and that has no form here is an error of its own.
    func all() async throws(CKError) -> [(CKSubscription.ID, Result<CKSubscription, any Error>)] {
        let distanceUnit = try service.distanceUnit()
        var results: [(CKSubscription.ID, Result<CKSubscription, any Error>)] = []
        for json in try service.members("subscriptions", of: await service.read("subscriptions/list") { _ in }) {
            guard let id = json["subscriptionID"]?.string else { throw .unreadable("subscriptionID") }
            results.append((id, Result { try RecordReader.subscription(json, distanceUnit) }))
        }
        return results
    }

    /// Subscriptions by their IDs, in the order asked for, as many in a request as it takes.
    func named(
        _ ids: [CKSubscription.ID]
    ) async throws(CKError) -> [(CKSubscription.ID, Result<CKSubscription, any Error>)] {
        try await service.lookup("subscriptions", ids) { writer, id in
            writer.object { $0.member("subscriptionID", id) }
        } read: {
            try RecordReader.subscription($0, try service.distanceUnit())
        }
    }

    /// Saves and deletes subscriptions, as many in a request as it takes.
    func modify(
        saving subscriptions: [CKSubscription], deleting ids: [CKSubscription.ID]
    ) async throws(CKError) -> [ModifySubscriptionResult] {
        guard Set(subscriptions.map(\.subscriptionID) + ids).count == subscriptions.count + ids.count else {
            throw CKError(.invalidArguments, reason: "a subscription is to be saved or deleted twice in one call")
        }
        let distanceUnit = try service.distanceUnit()
        var operations: [SubscriptionOperation] = []
        var refused: [ModifySubscriptionResult] = []
        for subscription in subscriptions {
            let id = subscription.subscriptionID
            do throws(CKError) {
                operations.append((id, subscription, try SubscriptionWriter.save(subscription, distanceUnit)))
            } catch {
                refused.append(.saved(id, .failure(error)))
            }
        }
        operations += ids.map { ($0, nil, SubscriptionWriter.delete($0)) }
        return refused + (try await service.inRequests(operations, modify) { Self.outcome(of: $0, $1) })
    }

    /// What is saved, or the ID of what is deleted, as JSON for subscriptions/modify.
    private typealias SubscriptionOperation = (id: CKSubscription.ID, saved: CKSubscription?, json: [UInt8])

    private static func outcome(of operation: SubscriptionOperation, _ error: CKError?) -> ModifySubscriptionResult {
        guard let saved = operation.saved else {
            return .deleted(operation.id, error.map { .failure($0) } ?? .success(()))
        }
        return .saved(operation.id, error.map { .failure($0) } ?? .success(saved))
    }

    private func modify(_ operations: [SubscriptionOperation]) async throws(CKError) -> [ModifySubscriptionResult] {
        try checkCancellation()
        var writer = JSONWriter()
        writer.object { writer in
            writer.member("operations", each: operations) { $0.raw($1.json) }
        }
        let answer = try await service.write("subscriptions/modify", writer.bytes)
        let members = try service.members(
            "subscriptions", of: answer, count: operations.count, "subscription for each operation")
        let mapping = service.mapping
        return zip(operations, members).map { Self.outcome(of: $0, mapping.subscription($1)) }
    }
}

extension DatabaseService {
    /// The user's subscriptions to it.
    var subscriptions: SubscriptionService { SubscriptionService(service: self) }
}

/// Writes operations of subscriptions/modify.
private enum SubscriptionWriter {
    static func delete(_ id: CKSubscription.ID) -> [UInt8] {
        var writer = JSONWriter()
        writer.object { writer in
            writer.member("operationType", "delete")
            writer.key("subscription")
            writer.object { $0.member("subscriptionID", id) }
        }
        return writer.bytes
    }

    static func save(_ subscription: CKSubscription, _ distanceUnit: UnitLength) throws(CKError) -> [UInt8] {
        let query = try (subscription as? CKQuerySubscription).map { subscription throws(CKError) in
            try subscription.queryForm(distanceUnit)
        }
        var writer = JSONWriter()
        writer.object { writer in
            writer.member("operationType", "update")
            writer.key("subscription")
            writer.object { writer in
                writer.member("subscriptionID", subscription.subscriptionID)
                write(subscription, query, to: &writer)
                guard let info = subscription.notificationInfo else { return }
                writer.member("notificationInfo", info.json)
            }
        }
        return writer.bytes
    }

    private static func write(_ subscription: CKSubscription, _ query: JSONValue?, to writer: inout JSONWriter) {
        switch subscription {
        case let subscription as CKQuerySubscription:
            writer.member("subscriptionType", "query")
            if let zone = subscription.zoneID { writer.member("zoneID", zone) }
            if let query { writer.member("query", query) }
            let options = subscription.querySubscriptionOptions
            writer.key("firesOn")
            writer.array { writer in
                if options.contains(.firesOnRecordCreation) { writer.string("create") }
                if options.contains(.firesOnRecordUpdate) { writer.string("update") }
                if options.contains(.firesOnRecordDeletion) { writer.string("delete") }
            }
            writer.member("firesOnce", options.contains(.firesOnce))
        case let subscription as CKRecordZoneSubscription:
            writer.member("subscriptionType", "zone")
            writer.member("zoneID", subscription.zoneID)
            if let type = subscription.recordType { writer.member("recordType", type) }
        default:
            writer.member("subscriptionType", "database")
            if let type = (subscription as? CKDatabaseSubscription)?.recordType { writer.member("recordType", type) }
        }
    }
}

extension RecordReader {
    /// A subscription as the server describes it.
    /// - Parameter distanceUnit: what a radius in its predicate is to be in.
    static func subscription(_ json: JSONValue, _ distanceUnit: UnitLength) throws(CKError) -> CKSubscription {
        guard let id = json["subscriptionID"]?.string else { throw .unreadable("subscriptionID") }
        let zone = json["zoneID"].flatMap(zoneID)
        let subscription: CKSubscription
        switch json["subscriptionType"]?.string {
        case "query":
            guard let query = json["query"], let type = query["recordType"]?.string else { throw .unreadable("query") }
            let found = CKQuerySubscription(
                recordType: type, predicate: try CKQuerySubscription.predicate(of: query, in: zone, distanceUnit),
                subscriptionID: id, options: options(json))
            found.zoneID = zone
            subscription = found
        case "zone":
            guard let zone else { throw .unreadable("zoneID") }
            let found = CKRecordZoneSubscription(zoneID: zone, subscriptionID: id)
            found.recordType = json["recordType"]?.string
            subscription = found
        case "database":
            let found = CKDatabaseSubscription(subscriptionID: id)
            found.recordType = json["recordType"]?.string
            subscription = found
        default: throw .unreadable("subscriptionType")
        }
        subscription.notificationInfo = json["notificationInfo"].map { CKNotificationInfo($0) }
        return subscription
    }

    private static func options(_ json: JSONValue) -> CKQuerySubscription.Options {
        var options: CKQuerySubscription.Options = json["firesOnce"] == .bool(true) ? .firesOnce : []
        for name in json["firesOn"]?.array ?? [] {
            switch name.string {
            case "create": options.insert(.firesOnRecordCreation)
            case "update": options.insert(.firesOnRecordUpdate)
            case "delete": options.insert(.firesOnRecordDeletion)
            default: break
            }
        }
        return options
    }
}

extension CKNotificationInfo {
    var json: JSONValue {
        var members: [JSONValue.Member] = []
        func add(_ key: String, _ text: String?) { if let text { members.append(.init(key, .string(text))) } }
        func add(_ key: String, _ names: [String]?) {
            if let names, !names.isEmpty { members.append(.init(key, .array(names.map { .string($0) }))) }
        }
        func add(_ key: String, _ flag: Bool) { if flag { members.append(.init(key, .bool(true))) } }
        add("alertBody", alertBody)
        add("alertLocalizationKey", alertLocalizationKey)
        add("alertLocalizationArgs", alertLocalizationArgs)
        add("title", title)
        add("titleLocalizationKey", titleLocalizationKey)
        add("titleLocalizationArgs", titleLocalizationArgs)
        add("subtitle", subtitle)
        add("subtitleLocalizationKey", subtitleLocalizationKey)
        add("subtitleLocalizationArgs", subtitleLocalizationArgs)
        add("alertActionLocalizationKey", alertActionLocalizationKey)
        add("alertLaunchImage", alertLaunchImage)
        add("soundName", soundName)
        add("additionalFields", desiredKeys)
        add("shouldBadge", shouldBadge)
        add("shouldSendContentAvailable", shouldSendContentAvailable)
        add("shouldSendMutableContent", shouldSendMutableContent)
        add("category", category)
        add("collapseIDKey", collapseIDKey)
        return .object(members)
    }

    convenience init(_ json: JSONValue) {
        func names(_ key: String) -> [String]? { json[key]?.array?.compactMap(\.string) }
        func flag(_ key: String) -> Bool { json[key] == .bool(true) }
        self.init()
        alertBody = json["alertBody"]?.string
        alertLocalizationKey = json["alertLocalizationKey"]?.string
        alertLocalizationArgs = names("alertLocalizationArgs")
        title = json["title"]?.string
        titleLocalizationKey = json["titleLocalizationKey"]?.string
        titleLocalizationArgs = names("titleLocalizationArgs")
        subtitle = json["subtitle"]?.string
        subtitleLocalizationKey = json["subtitleLocalizationKey"]?.string
        subtitleLocalizationArgs = names("subtitleLocalizationArgs")
        alertActionLocalizationKey = json["alertActionLocalizationKey"]?.string
        alertLaunchImage = json["alertLaunchImage"]?.string
        soundName = json["soundName"]?.string
        desiredKeys = names("additionalFields")
        shouldBadge = flag("shouldBadge")
        shouldSendContentAvailable = flag("shouldSendContentAvailable")
        shouldSendMutableContent = flag("shouldSendMutableContent")
        category = json["category"]?.string
        collapseIDKey = json["collapseIDKey"]?.string
    }
}
