import HistoryChecks
import RecordModel
import RecordStore
import Service

// How a client looks at records.
extension Client {
    func lookUp() async {
        await lookUp(
            Array(Self.names.shuffled(using: &world.generator).prefix(world.random(1...3))),
            in: world.random(0...(recorder.zones.count - 1)))
    }

    func lookUpAll(in zone: Int) async { await lookUp(Self.names, in: zone) }

    private func lookUp(_ names: [String], in zone: Int) async {
        let list = names.map { #"{"recordName":"\#($0)"}"# }.joined(separator: ",")
        let body = Array(#"{"records":[\#(list)],"zoneID":{"zoneName":"\#(recorder.zones[zone].key.name)"}}"#.utf8)
        await read(zone, .lookup(names)) { visit, request throws(RequestFailure) in
            try await RecordQueries(request).lookUp(try LookupRecordsRequest(sent: body))
        } _: { [self] page throws(UnexpectedAnswer) in
            let records = try page.records.recordList()
            guard records.map(\.name) == names else { throw UnexpectedAnswer("records \(records.map(\.name))") }
            for (name, record, _) in records { known[place(name, in: zone)] = record?.version }
            see(records, in: zone, by: "a lookup")
            return .records(records.map(\.record))
        }
    }

    private func see(_ records: [(name: String, record: RecordCopy?, version: Version?)], in zone: Int, by how: String)
    {
        for (name, record, version) in records {
            guard let version else { continue }
            recorder.saw(
                name, in: recorder.zones[zone].key.name, version, record?.content, by: "\(how) of client \(number)")
        }
    }

    func query() async { await query(kind: world.pick(Self.kinds), in: world.random(0...(recorder.zones.count - 1))) }

    func queryAll(in zone: Int) async { for kind in Self.kinds { await query(kind: kind, in: zone) } }

    private func query(kind: String, in zone: Int) async {
        let filter = #"{"fieldName":"\#(Place.kindField)","comparator":"EQUALS","fieldValue":{"value":"\#(kind)"}}"#
        let body = Array(
            #"{"query":{"recordType":"\#(Place.type)","filterBy":[\#(filter)]},"zoneID":{"zoneName":"\#(recorder.zones[zone].key.name)"}}"#
                .utf8)
        await read(zone, .query(field: Place.kindField, equals: kind)) { visit, request throws(RequestFailure) in
            try await RecordQueries(request).query(try QueryRecordsRequest(sent: body))
        } _: { [self] page throws(UnexpectedAnswer) in
            let records = try page.records.recordList()
            see(records, in: zone, by: "a query")
            // Pages are not of one moment.
            if page.continuationMarker != nil, nodes[0].options.hasSmallPages { return nil }
            guard page.continuationMarker == nil else {
                throw UnexpectedAnswer("a query of \(records.count) records goes on")
            }
            return .view(try records.unique())
        }
    }

    /// One read, with its place in the history. Reading again is harmless, so only answers count.
    @discardableResult
    private func read<Found: Sendable>(
        _ zone: Int, _ operation: ZoneModel.Operation,
        _ look: @escaping @Sendable (Visit, DatabaseRequest) async throws(RequestFailure) -> Found,
        _ outcome: (Found) throws(UnexpectedAnswer) -> ZoneModel.Outcome?
    ) async -> ZoneModel.Outcome? {
        let call = recorder.begin(zone: zone, operation, by: number)
        let answer = await ask(repeats: true, triesMax: 4) { visit throws(RequestFailure) in
            try await visit.database { request throws(RequestFailure) in try await look(visit, request) }
        }
        do {
            switch answer {
            case .answered(let found, _):
                guard let outcome = try outcome(found) else {
                    recorder.withdraw(zone: zone, call)
                    return nil
                }
                recorder.end(zone: zone, call, outcome)
                return outcome
            case .failed(let failure) where failure.error.code == .zoneNotFound:
                feeds[zone] = nil
                recorder.end(zone: zone, call, .zoneNotFound)
                return .zoneNotFound
            case .failed(let failure)
            where failure.error.reason.hasPrefix("client knowledge differs") || takesNoEarlierToken(failure.error):
                feeds[zone] = nil
                recorder.withdraw(zone: zone, call)
            case .failed(let failure): throw UnexpectedAnswer("\(failure.error)")
            case .nothing: recorder.withdraw(zone: zone, call)
            }
        } catch {
            recorder.violated("client \(number) was answered \(error)")
            recorder.withdraw(zone: zone, call)
        }
        return nil
    }

    /// Whether a token may be refused because a build of before gave it, a week ago by the clocks.
    func takesNoEarlierToken(_ error: ServiceError) -> Bool {
        error.detail == .expiredSyncToken && nodes[0].options.isUpgraded
    }

    /// Follows a zone's feed to its end, or a part of the way.
    func followFeed() async {
        // The default zone has no feed.
        await followFeed(of: world.random(0...(recorder.zones.count - 1)), from: feeds, pagesMax: world.random(1...6))
    }

    func readFeed(of zone: Int) async { await followFeed(of: zone, from: [:], pagesMax: 50) }

    private func followFeed(of zone: Int, from start: [Int: ZoneFeed], pagesMax: Int) async {
        guard !recorder.zones[zone].key.isDefault else { return }
        feeds[zone] = start[zone]
        for _ in 0..<pagesMax {
            let feed = feeds[zone] ?? ZoneFeed()
            let token = feed.token.map { #","syncToken":"\#($0)""# } ?? ""
            let body = Array(
                #"{"zoneID":{"zoneName":"\#(recorder.zones[zone].key.name)"},"resultsLimit":\#(world.random(1...4))\#(token)}"#
                    .utf8)
            var isOver = false
            let outcome = await read(zone, .view) { visit, request throws(RequestFailure) in
                try await ChangeFeeds(request).zone(try RecordChangesRequest(sent: body))
            } _: { [self] page throws(UnexpectedAnswer) in
                let (copy, hasMore) = try take(page, onto: feed, of: zone)
                feeds[zone] = copy
                isOver = !hasMore
                return hasMore ? nil : .view(copy.copy.records)
            }
            if outcome != nil || isOver || feeds[zone] == nil { return }
        }
    }

    private func take(
        _ page: ChangeFeeds.ZonePage, onto feed: ZoneFeed, of zone: Int
    ) throws(UnexpectedAnswer) -> (ZoneFeed, hasMore: Bool) {
        var feed = feed
        let records = try page.records.recordList()
        see(records, in: zone, by: "the feed")
        var entries: [FeedCopy<[String: String]>.Entry] = []
        for (name, record, version) in records {
            guard let version else { throw UnexpectedAnswer("\(name) has no change tag in a feed") }
            entries.append(.init(name, version, record?.content))
        }
        do throws(FeedCopy<[String: String]>.Fault) { try feed.copy.take(entries) } catch {
            throw UnexpectedAnswer("in zone \(recorder.zones[zone].key.name) \(error)")
        }
        feed.token = Base64.encode(page.token)
        return (feed, page.hasMore)
    }
}

extension [(name: String, record: RecordCopy?, version: Version?)] {
    /// By name; none may be there twice.
    fileprivate func unique() throws(UnexpectedAnswer) -> [String: RecordCopy] {
        var all: [String: RecordCopy] = [:]
        for (name, record, _) in self {
            guard let record, all.updateValue(record, forKey: name) == nil else {
                throw UnexpectedAnswer("\(name) twice, or deleted")
            }
        }
        return all
    }
}
