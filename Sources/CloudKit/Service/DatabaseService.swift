import RecordModel
import ServiceClient

/// One database. It does what calls and operations have in common, without their callbacks.
struct DatabaseService: Sendable {
    var account: ContainerAccount
    var scope: CKDatabase.Scope
    var times = CallTimes()
    /// The record name of the user for whom requests are sent; nil for the session's. While another one is signed in
    /// they fail with `notAuthenticated`.
    var user: String?
    /// What changes are known by that a long-lived operation sends; nil for new keys with each request.
    var keys: LongLivedKeys?
    /// Gets the receipts with which a long-lived operation's changes are about to be sent.
    var keepReceipts: (@Sendable (AssetReceipts) -> Void)?
    /// The deadline of the whole call; nil if there is none, or it has not begun.
    var end: ContinuousClock.Instant?

    /// The same for one call that began at `start`.
    func begun(at start: ContinuousClock.Instant = .now) -> DatabaseService {
        guard let resource = times.resource else { return self }
        var service = self
        service.end = start + resource
        return service
    }

    var fetchesFiles: Bool { times.fetchesFiles ?? true }

    /// The most results that the server gives in a page.
    static let pageMax = Limits.recordsPerPageMax

    private var name: String {
        switch scope {
        case .public: "public"
        case .private: "private"
        case .shared: "shared"
        }
    }

    var mapping: ErrorMapping {
        let configuration = try? account.configuration()
        return ErrorMapping(
            container: configuration?.container ?? account.identifier,
            isAnonymous: configuration.map {
                $0.webAuthToken == nil && $0.webAuthTokenFile == nil && $0.serverKeyFile == nil
            } ?? false)
    }

    /// Sends a request that changes nothing.
    func read(_ action: String, _ body: (inout JSONWriter) -> Void) async throws(CKError) -> JSONValue {
        var writer = JSONWriter()
        writer.object(body)
        return try await send(action, writer.bytes, idempotencyKey: nil)
    }

    /// Sends a request that changes something. It is done once, even if it has to be sent several times.
    func write(_ action: String, _ body: [UInt8]) async throws(CKError) -> JSONValue {
        try await send(action, body, idempotencyKey: keys?.key(for: action, body) ?? IdempotencyKeys.make())
    }

    private func send(_ action: String, _ body: [UInt8], idempotencyKey: String?) async throws(CKError) -> JSONValue {
        if Task.isCancelled { throw ErrorMapping.cancelled }
        if scope == .shared { throw .notBuilt("sharing, and with it shared databases,") }
        let (session, configuration) = try account.session()
        let limit = try limit(configuration)
        do {
            return try await session.send(
                database: name, action: action, body: body, idempotencyKey: idempotencyKey,
                patience: times.request ?? configuration.patience, limit: limit, of: user)
        } catch let failure as ServiceFailure
            where failure.code == ErrorCode.atomicError.rawValue && failure.json["records"] != nil
        {
            // The records say which operation failed.
            return failure.json
        } catch {
            throw mapping.error(error)
        }
    }

    /// How long a request that begins now may take; nil for as long as its attempts take. A request without time left
    /// is one attempt.
    private func limit(_ configuration: ZonekeeperConfiguration) throws(CKError) -> Duration? {
        let request = times.request.flatMap { $0 > .zero ? $0 : nil }
        guard let rest = try timeLeft(configuration) else { return request }
        return min(request ?? rest, rest)
    }

    /// What is left of the time for the whole call; nil where that has no limit.
    func timeLeft(_ configuration: ZonekeeperConfiguration) throws(CKError) -> Duration? {
        guard let end, let resource = times.resource else { return nil }
        let rest = ContinuousClock.now.duration(to: end)
        guard rest > .zero else {
            throw CKError(
                .networkFailure,
                reason: "the operation was not done within its \(resource) (timeoutIntervalForResource)",
                details: CKErrorDetails(containerID: configuration.container))
        }
        return rest
    }

    /// The members of an answer that has an array.
    func members(_ key: String, of answer: JSONValue) throws(CKError) -> [JSONValue] {
        guard let members = answer[key]?.array else { throw .unreadable(key) }
        return members
    }

    /// The members of an answer that has one for each thing that it was asked for.
    /// - Parameter what: names them in the error where their number is another.
    func members(
        _ key: String, of answer: JSONValue, count: Int, _ what: String
    ) throws(CKError) -> [JSONValue] {
        let members = try members(key, of: answer)
        guard members.count == count else { throw .unreadable(what) }
        return members
    }
}

extension Sequence {
    /// The elements by a key, in the order in which the keys come first.
    func grouped<Key: Hashable>(by key: (Element) -> Key) -> [(key: Key, members: [Element])] {
        var groups: [(key: Key, members: [Element])] = []
        var places: [Key: Int] = [:]
        for element in self {
            let key = key(element)
            let place = places[key] ?? groups.count
            if place == groups.count { groups.append((key, [])) }
            places[key] = place
            groups[place].members.append(element)
        }
        return groups
    }
}

func checkCancellation() throws(CKError) {
    if Task.isCancelled { throw ErrorMapping.cancelled }
}

/// How long a call or an operation may take, and whether it fetches files, by its configuration.
struct CallTimes: Sendable, Hashable {
    /// For one request with its repeats; nil for the configuration's `patience`, and for each attempt its own time.
    var request: Duration?
    /// For all of it; nil for as long as it takes.
    var resource: Duration?
    /// Whether records come with the files of their assets; nil where the app did not say.
    var fetchesFiles: Bool?

    /// The values of the first configuration that has any.
    init(_ configurations: CKOperation.Configuration?...) {
        for case let configuration? in configurations {
            request = request ?? configuration.chosenTimeout.map(Self.duration)
            resource = resource ?? configuration.chosenResourceTimeout.map(Self.duration)
            fetchesFiles = fetchesFiles ?? configuration.chosenFetchesFiles
        }
    }

    /// The same, with the values of `others` for those not set.
    func filled(from others: CallTimes) -> CallTimes {
        var times = self
        times.request = request ?? others.request
        times.resource = resource ?? others.resource
        times.fetchesFiles = fetchesFiles ?? others.fetchesFiles
        return times
    }

    /// The duration, at most a year; nil if it is not a valid one.
    private static func duration(_ seconds: Double) -> Duration {
        .seconds(seconds.isNaN ? 0 : min(max(seconds, 0), 31_536_000))
    }
}

extension DatabaseService {
    func allZones() async throws(CKError) -> [CKRecordZone] {
        var zones: [CKRecordZone] = []
        for json in try members("zones", of: await read("zones/list") { _ in }) {
            zones.append(try RecordReader.zone(json))
        }
        return zones
    }

    /// Zones by their names, in the order asked for, as many in a request as it takes.
    /// - Throws: where the first request failed. Later the zones that are left get its error one by one.
    func zones(
        _ ids: [CKRecordZone.ID]
    ) async throws(CKError) -> [(CKRecordZone.ID, Result<CKRecordZone, any Error>)] {
        try await lookup("zones", ids) {
            $0.zoneID(of: $1)
        } read: {
            try RecordReader.zone($0)
        }
    }

    /// Items by their IDs, in the order asked for, as many in a request as it takes.
    /// - Parameters:
    ///   - kind: what the route and its arrays are called.
    ///   - write: the item's part of the request.
    func lookup<ID, Item>(
        _ kind: String, _ ids: [ID], write: (inout JSONWriter, ID) -> Void, read item: (JSONValue) throws -> Item
    ) async throws(CKError) -> [(ID, Result<Item, any Error>)] {
        try await inRequests(ids) { (ids) async throws(CKError) in
            try checkCancellation()
            let answer = try await read("\(kind)/lookup") { $0.member(kind, each: ids, write) }
            let members = try members(kind, of: answer, count: ids.count, "member of \(kind) for each ID")
            let mapping = mapping
            return zip(ids, members).map { id, json in
                (id, mapping.item(json).map { .failure($0) } ?? Result { try item(json) })
            }
        } failed: { id, error in
            (id, .failure(error))
        }
    }

    /// Does something for many items, as many in a request as it takes.
    /// - Parameter failed: the result of an item that was left when a later request failed.
    func inRequests<Item, Outcome>(
        _ items: [Item], _ request: ([Item]) async throws(CKError) -> [Outcome], failed: (Item, CKError) -> Outcome
    ) async throws(CKError) -> [Outcome] {
        var outcomes: [Outcome] = []
        for first in stride(from: 0, to: items.count, by: Limits.operationsMax) {
            do throws(CKError) {
                outcomes += try await request(Array(items[first...].prefix(Limits.operationsMax)))
            } catch {
                if first == 0 { throw error }
                return outcomes + items[first...].map { failed($0, error) }
            }
        }
        return outcomes
    }

    /// Creates zones that are not there, and deletes those that are with their records, in as few requests as it takes.
    /// - Throws: where the first request failed. Later the zones that are left get its error one by one: what was done
    ///   before is told.
    func modifyZones(
        saving zones: [CKRecordZone], deleting ids: [CKRecordZone.ID]
    ) async throws(CKError) -> [ModifyZoneResult] {
        try await ZoneModification(service: self).run(zones.map { ($0.zoneID, true) } + ids.map { ($0, false) })
    }
}
