import Cluster
import HistoryChecks
import RaftCore
import RecordModel
import RecordStore

// How a client looks at records.
extension Client {
    private static let rendering = ShardRead.Rendering(desiredKeys: nil, numbersAsStrings: false)

    func lookUp() async {
        await lookUp(
            Array(Self.names.shuffled(using: &world.generator).prefix(world.random(1...3))),
            in: world.random(0...(recorder.zones.count - 1)))
    }

    func lookUpAll(in zone: Int) async { await lookUp(Self.names, in: zone) }

    private func lookUp(_ names: [String], in zone: Int) async {
        let read = ShardRead.lookup(
            ShardRead.RecordLookup(
                zone: recorder.zones[zone].key, schemaVersion: Place.schemaVersion, caller: Place.caller,
                items: names.map { ($0, Self.rendering) }))
        _ = await self.read(read, zone, .lookup(names)) { [self] answer throws(UnexpectedAnswer) in
            let records = try answer.records()
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
        let query = RecordQuery(
            zone: recorder.zones[zone].key, schemaVersion: Place.schemaVersion, caller: Place.caller,
            query: Query(
                recordType: Place.type,
                filters: [Filter(field: Place.kindField, comparator: .equals, value: .string(kind))]), limit: 200)
        _ = await read(
            .query(query, Self.rendering), zone, .query(field: Place.kindField, equals: kind)
        ) { [self] answer throws(UnexpectedAnswer) in
            let records = try answer.records()
            guard answer.cursor == nil else { throw UnexpectedAnswer("a query of \(records.count) records goes on") }
            see(records, in: zone, by: "a query")
            return .view(try records.unique())
        }
    }

    /// One read, with its place in the history. Reading again is harmless, so only answers count.
    @discardableResult
    private func read(
        _ read: ShardRead, _ zone: Int, _ operation: ZoneModel.Operation,
        _ outcome: (ShardAnswer) throws(UnexpectedAnswer) -> ZoneModel.Outcome?
    ) async -> ZoneModel.Outcome? {
        let group = recorder.zones[zone].group
        let call = recorder.begin(zone: zone, operation, by: number)
        let answer = await ask(repeats: true, triesMax: 4) { edge throws(ClusterError) in
            try await edge.read(read, from: group)
        }
        guard case .answered(let read, _) = answer else {
            recorder.withdraw(zone: zone, call)
            return nil
        }
        do {
            switch read {
            case .found(let found):
                guard let outcome = try outcome(found) else {
                    recorder.withdraw(zone: zone, call)
                    return nil
                }
                recorder.end(zone: zone, call, outcome)
                return outcome
            case .refused(let error) where error.code == .zoneNotFound:
                feeds[zone] = nil
                recorder.end(zone: zone, call, .zoneNotFound)
                return .zoneNotFound
            case .refused(let error) where error.reason.hasPrefix("client knowledge differs"):
                feeds[zone] = nil
                recorder.withdraw(zone: zone, call)
            case .refused, .needsSchema: throw UnexpectedAnswer("\(read)")
            }
        } catch {
            recorder.violated("client \(number) was answered \(error)")
            recorder.withdraw(zone: zone, call)
        }
        return nil
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
            let request = ZoneChangesRequest(
                zone: recorder.zones[zone].key, schemaVersion: Place.schemaVersion, caller: Place.caller,
                token: feed.token, limit: world.random(1...4))
            var isOver = false
            let outcome = await read(.zoneChanges(request, Self.rendering), zone, .view) {
                [self] answer throws(UnexpectedAnswer) in
                let (copy, hasMore) = try take(answer, onto: feed, of: zone)
                feeds[zone] = copy
                isOver = !hasMore
                return hasMore ? nil : .view(copy.copy.records)
            }
            if outcome != nil || isOver || feeds[zone] == nil { return }
        }
    }

    private func take(
        _ answer: ShardAnswer, onto feed: ZoneFeed, of zone: Int
    ) throws(UnexpectedAnswer) -> (ZoneFeed, hasMore: Bool) {
        var feed = feed
        let records = try answer.records()
        see(records, in: zone, by: "the feed")
        var page: [FeedCopy<[String: String]>.Entry] = []
        for (name, record, version) in records {
            guard let version else { throw UnexpectedAnswer("\(name) has no change tag in a feed") }
            page.append(.init(name, version, record?.content))
        }
        do throws(FeedCopy<[String: String]>.Fault) { try feed.copy.take(page) } catch {
            throw UnexpectedAnswer("in zone \(recorder.zones[zone].key.name) \(error)")
        }
        feed.token = answer.cursor
        return (feed, answer.hasMore)
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
