import Cluster
import RecordModel
import RecordStore
import Service

// What the feeds of its workbook's zones and of their database tell a client, page by page.
extension Client {
    /// Follows the feed of a custom zone from where it was left, or from the beginning in some direction.
    func followEntries(_ place: Int) async {
        guard let book = workbook, book.zones[place].isThere else { return }
        let zone = book.zones[place]
        guard zone.isCustom else { return await followInVain(place) }
        if zone.tokenBefore != nil, world.chance(20) { await followTokenBefore(place) }
        if world.chance(20) { workbook?.zones[place].feed = .init() }
        let isReverse = zone.feed.token == nil && world.chance(40)
        if isReverse { workbook?.zones[place].feed = .init(position: .max, isReverse: true) }
        // One that leaves records out says nothing of where a complete one goes on.
        let (kept, types) = (workbook?.zones[place].feed, world.chance(15) ? newTypes(book) : nil)
        for _ in 0..<120 {
            guard let hasMore = await followPage(place, types) else { break }
            if hasMore, world.chance(6), await settle(place, triesMax: 1) { await changeSome(place) }
            guard hasMore || workbook?.zones[place].feed.isReverse == true else { break }
            if !hasMore { workbook?.zones[place].feed.isReverse = false }
        }
        if types != nil, let kept, workbook?.type == book.type { workbook?.zones[place].feed = kept }
    }

    private func newTypes(_ book: Workbook) -> [String] {
        world.pick([[book.type], [book.otherType], [book.otherType, book.type]])
    }

    private func askForFeed(
        _ place: Int, _ token: String?, _ keys: [String]?, _ types: [String]?, limit: Int, isReverse: Bool
    ) async -> Asked<ChangeFeeds.ZonePage> {
        guard let book = workbook else { return .nothing(mayHaveBeenDone: false) }
        let zone = book.zones[place]
        let body = book.changes(of: zone, after: token, limit: limit, isReverse: isReverse, keys: keys, types: types)
        return await ask(as: book.owner, of: zone.key.database, triesMax: 4) { visit, request throws(RequestFailure) in
            try await ChangeFeeds(request).zone(try RecordChangesRequest(sent: body))
        }
    }

    /// - Returns: whether there is more; nil where the feed was not followed.
    private func followPage(_ place: Int, _ types: [String]?) async -> Bool? {
        guard let book = workbook, book.zones[place].isThere else { return nil }
        let feed = book.zones[place].feed
        let (limit, keys) = (world.random(1...3), world.chance(20) ? Workbook.fieldNames.filter { $0 < "p" } : nil)
        let answer = await askForFeed(place, feed.token, keys, types, limit: limit, isReverse: feed.isReverse)
        switch answer {
        case .nothing: return nil
        // Tombstones may be gone.
        case .failed(let failure) where failure.error.reason.hasPrefix("client knowledge differs") && feed.token != nil:
            workbook?.zones[place].feed = .init()
            return nil
        case .failed(let failure):
            complainOfWorkbook("the feed of \(book.zones[place].key.name) is refused: \(failure.error)")
            return nil
        case .answered(let page, _):
            recorder.answered()
            guard workbook?.type == book.type else { return nil }
            do throws(UnexpectedAnswer) {
                try workbook?.zones[place].take(page, book.type, keys, types, limit: limit)
            } catch {
                complainOfWorkbook(
                    "the feed of \(book.zones[place].key.name), \(limit) at a time"
                        + "\(feed.isReverse ? " backwards" : "") from \(feed.position): \(error)")
                return nil
            }
            if page.hasMore, page.count < limit { world.met(.endedPage) }
            return page.hasMore
        }
    }

    /// A default zone has no feed.
    private func followInVain(_ place: Int) async {
        let answer = await askForFeed(place, nil, nil, nil, limit: 2, isReverse: false)
        switch answer {
        case .failed(let failure) where failure.error.code == .badRequest || failure.error.code == .accessDenied: break
        case .failed(let failure): complainOfWorkbook("the feed of a default zone is refused: \(failure.error)")
        case .answered: complainOfWorkbook("a default zone has a feed")
        case .nothing: break
        }
    }

    private func followTokenBefore(_ place: Int) async {
        let answer = await askForFeed(
            place, workbook?.zones[place].tokenBefore, nil, nil, limit: 3, isReverse: false)
        switch answer {
        case .failed(let failure) where failure.error.code == .badRequest: break
        case .failed(let failure): complainOfWorkbook("a token of an earlier life is refused: \(failure.error)")
        case .answered: complainOfWorkbook("a token of an earlier life of a zone is followed")
        case .nothing: break
        }
    }

    // MARK: The database

    /// Follows the feed of the private database to its end: it tells of the zones that changed, as they are, once each.
    func followWorkbook() async {
        guard let book = workbook else { return }
        if world.chance(20) { workbook?.forgetDatabase() }
        for _ in 0..<60 {
            let (after, limit) = (workbook?.databaseToken, world.random(1...2))
            let answer = await ask(as: book.owner, of: book.zones[0].key.database, triesMax: 4) {
                visit, request throws(RequestFailure) in
                try await ChangeFeeds(request).database(after: after, limit: limit)
            }
            guard workbook?.type == book.type, case .answered(let page, _) = answer else {
                if case .failed(let failure) = answer {
                    complainOfWorkbook("the feed of the database is refused: \(failure.error)")
                }
                return
            }
            do throws(UnexpectedAnswer) {
                guard page.zones.count <= limit else { throw UnexpectedAnswer("\(page.zones.count), not \(limit)") }
                for zone in page.zones { try workbook?.take(zone) }
                workbook?.databaseToken = page.token
                if !page.hasMore { return try workbook?.endDatabase() ?? () }
            } catch {
                return complainOfWorkbook("the feed of the database: \(error)")
            }
        }
        complainOfWorkbook("the feed of the database does not end")
    }

    /// The zones of the private database, all of them and one by itself.
    func listWorkbookZones() async {
        guard let book = workbook else { return }
        let (place, database) = (world.random(0...1), book.zones[0].key.database)
        let listed = await ask(as: book.owner, of: database, triesMax: 4) { visit, request throws(RequestFailure) in
            try await Zones(request).list()
        }
        if case .answered(let states, _) = listed {
            let expected = [0, 1].map { book.zones[$0] }.filter(\.isThere).map(\.state).sorted { $0.name < $1.name }
            let custom = states.filter { $0.name != ZoneKey.defaultZoneName }
            if custom != expected || states.count != custom.count + 1 {
                return complainOfWorkbook("its zones are \(states) instead of \(expected) and a default zone")
            }
        }
        if case .failed(let failure) = listed { complainOfWorkbook("its zones are refused: \(failure.error)") }
        let zone = book.zones[place]
        let found = await ask(as: book.owner, of: database, triesMax: 4) { visit, request throws(RequestFailure) in
            try await Zones(request).lookUp(ZoneID(name: zone.key.name))
        }
        switch found {
        case .answered(let state, _) where zone.isThere && state == zone.state: break
        case .failed(let failure) where !zone.isThere && failure.error.code == .zoneNotFound: break
        case .nothing: break
        case .answered(let state, _): complainOfWorkbook("zone \(zone.key.name) is \(state) instead of \(zone.state)")
        case .failed(let failure): complainOfWorkbook("zone \(zone.key.name) is refused: \(failure.error)")
        }
    }
}

extension Workbook.Zone {
    var state: ZoneState { ZoneState(name: key.name, incarnation: incarnation, sequence: sequence) }

    /// Takes a page of the feed over: it must have what changed, as it is, in order, and leave nothing out.
    mutating func take(
        _ page: ChangeFeeds.ZonePage, _ type: String, _ keys: [String]?, _ types: [String]?, limit: Int
    ) throws(UnexpectedAnswer) {
        guard let elements = (try? JSONParser.parse(page.records))?.array, elements.count <= limit,
            elements.count == page.count
        else { throw UnexpectedAnswer("\(page.count) changes, not \(limit)") }
        var position = feed.position
        var told: Set<String> = []
        for element in elements {
            guard let name = element["recordName"]?.string,
                let tag = element["recordChangeTag"]?.string.flatMap(ChangeTag.init), tag.incarnation == incarnation,
                feed.isReverse ? tag.sequence < position : tag.sequence > position, told.insert(name).inserted
            else { throw UnexpectedAnswer("after \(position) there is \(element)") }
            if element["deleted"] == .bool(true) {
                guard let range = tombstones[name], range.contains(tag.sequence) else {
                    throw UnexpectedAnswer("\(name) is deleted at \(tag)")
                }
                tombstones[name] = tag.sequence...tag.sequence
            } else {
                let entry = try Workbook.Entry(json: element, type: type, asStrings: false)
                guard entry == entries[name]?.showing(keys) else {
                    throw UnexpectedAnswer("\(entry) instead of \(entries[name].map { "\($0)" } ?? "nothing")")
                }
            }
            position = tag.sequence
        }
        guard types?.contains(type) ?? true else {
            guard elements.isEmpty else { throw UnexpectedAnswer("\(elements) is of another type") }
            return goOn(page, to: position)
        }
        try requireAll(told, upTo: page.hasMore ? (elements.isEmpty ? feed.position : position) : nil)
        goOn(page, to: position)
    }

    /// Nothing between where the feed was and a position, or its end, is left out.
    private func requireAll(_ told: Set<String>, upTo end: UInt64?) throws(UnexpectedAnswer) {
        func isPassed(_ range: ClosedRange<UInt64>) -> Bool {
            feed.isReverse
                ? range.upperBound < feed.position && range.lowerBound >= end ?? 0
                : range.lowerBound > feed.position && range.upperBound <= end ?? .max
        }
        for entry in entries.values where isPassed(entry.tag.sequence...entry.tag.sequence) {
            if !told.contains(entry.name) { throw UnexpectedAnswer("\(entry.name) at \(entry.tag) is left out") }
        }
        // Who knows nothing yet is not told of all that is gone.
        for (name, range) in tombstones where !feed.isFirst && isPassed(range) && !told.contains(name) {
            throw UnexpectedAnswer("\(name), deleted at \(range), is left out")
        }
    }

    private mutating func goOn(_ page: ChangeFeeds.ZonePage, to position: UInt64) {
        feed.token = Base64.encode(page.token)
        feed.position = position
        guard !page.hasMore else {
            // Where the walk began.
            if feed.isReverse, feed.high == nil { feed.high = sequence }
            return
        }
        feed.isFirst = false
        feed.position = feed.isReverse ? feed.high ?? sequence : sequence
        feed.high = nil
    }
}

extension Workbook {
    /// Follows the database from the beginning.
    mutating func forgetDatabase() {
        (databaseToken, isDatabaseNew) = (nil, true)
        for place in [0, 1] { (zones[place].hasNews, zones[place].wasTold) = (zones[place].isThere, false) }
    }

    /// Takes over what the feed of the database tells of a zone.
    mutating func take(_ changed: ChangedZone) throws(UnexpectedAnswer) {
        guard let place = [0, 1].first(where: { zones[$0].key.name == changed.state.name }),
            zones[place].hasNews || isDatabaseNew && changed.isDeleted, !zones[place].wasTold,
            changed.isDeleted != zones[place].isThere, changed.state == zones[place].state
        else { throw UnexpectedAnswer("\(changed), and its zones are \(zones.map(\.state))") }
        zones[place].wasTold = true
    }

    /// The feed of the database has ended.
    mutating func endDatabase() throws(UnexpectedAnswer) {
        for place in [0, 1] {
            let zone = zones[place]
            if zone.hasNews, zone.isThere, !zone.wasTold { throw UnexpectedAnswer("\(zone.state) is left out") }
            (zones[place].hasNews, zones[place].wasTold) = (false, false)
        }
        isDatabaseNew = false
    }
}
