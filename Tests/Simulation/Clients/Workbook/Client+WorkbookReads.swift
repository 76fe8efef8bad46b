import Authorization
import Cluster
import RecordModel
import RecordStore
import Service

// What a client finds in its workbook.
extension Client {
    /// What was found under a name.
    struct Seen: Sendable {
        var name: String
        /// Nil where there is nothing, or nothing that may be read.
        var entry: Workbook.Entry?
        var error: ErrorCode?
    }

    /// What came of a read; nil where there was no answer.
    private func read<Value: Sendable>(
        _ what: String, _ person: Workbook.Person, _ database: DatabaseKey, refusedAs code: ErrorCode? = nil,
        _ look: @escaping @Sendable (Visit, DatabaseRequest) async throws(RequestFailure) -> Value
    ) async -> Value? {
        switch await ask(as: person, of: database, triesMax: 4, look) {
        case .answered(let value, _):
            recorder.answered()
            if let code { complainOfWorkbook("\(what) is answered, and not refused as \(code)") }
            return code == nil ? value : nil
        case .failed(let failure):
            if failure.error.code != code { complainOfWorkbook("\(what) is refused: \(failure.error)") }
        case .nothing: break
        }
        return nil
    }

    private func newKeys() -> [String]? {
        guard world.chance(30) else { return nil }
        return Workbook.fieldNames.filter { _ in world.chance(40) }
    }

    private func list(_ records: [UInt8]) throws(UnexpectedAnswer) -> [JSONValue] {
        guard let elements = (try? JSONParser.parse(records))?.array else { throw UnexpectedAnswer("no array") }
        return elements
    }

    /// Reads records, each of which has this type.
    private func entries(
        _ records: [UInt8], _ book: Workbook, asStrings: Bool
    ) throws(UnexpectedAnswer) -> [Workbook.Entry] {
        var entries: [Workbook.Entry] = []
        for element in try list(records) {
            entries.append(try .init(json: element, type: book.type, asStrings: asStrings))
        }
        return entries
    }

    // MARK: By name

    /// Looks records up; nil where there was no answer.
    func lookedUp(
        _ names: [(name: String, keys: [String]?)], _ place: Int, _ person: Workbook.Person, asStrings: Bool
    ) async -> [Seen]? {
        guard let book = workbook else { return nil }
        let body = book.lookup(names, in: book.zones[place], asStrings: asStrings)
        let page = await read("a lookup", person, book.zones[place].key.database) {
            visit, request throws(RequestFailure) in
            try await RecordQueries(request).lookUp(try LookupRecordsRequest(sent: body))
        }
        guard let page else { return nil }
        do throws(UnexpectedAnswer) {
            var seen: [Seen] = []
            for element in try list(page.records) {
                guard let name = element["recordName"]?.string else { throw UnexpectedAnswer("no name: \(element)") }
                if let code = element["serverErrorCode"]?.string {
                    seen.append(Seen(name: name, error: ErrorCode(rawValue: code) ?? .internalError))
                } else {
                    seen.append(
                        Seen(name: name, entry: try .init(json: element, type: book.type, asStrings: asStrings)))
                }
            }
            guard seen.map(\.name) == names.map(\.name) else { throw UnexpectedAnswer("\(seen.map(\.name))") }
            return seen
        } catch {
            complainOfWorkbook("a lookup: \(error)")
            return nil
        }
    }

    func lookUpEntries(_ place: Int) async {
        guard let book = workbook, book.zones[place].isThere else { return }
        let zone = book.zones[place]
        let person = zone.isPublic ? world.pick(book.people) : book.owner
        let names = zone.names.shuffled(using: &world.generator).map { ($0, newKeys()) }
        guard let seen = await lookedUp(names, place, person, asStrings: world.chance(30)) else { return }
        for (found, (name, keys)) in zip(seen, names) {
            let entry = zone.entries[name]
            let isReadable = entry.map { book.mayRead(person, $0, in: zone) } ?? false
            let error: ErrorCode? = entry == nil ? .notFound : isReadable ? nil : .accessDenied
            guard found.error == error, found.entry == (isReadable ? entry?.showing(keys) : nil) else {
                return complainOfWorkbook(
                    "a lookup of \(name) by \(person.caller.stampName) with \(keys ?? ["all"]) finds \(found), and "
                        + "it is \(entry.map { "\($0)" } ?? "not there")")
            }
        }
    }

    /// What a record was before, a few versions at a time.
    func lookUpEarlier(_ place: Int) async {
        guard let book = workbook, book.zones[place].isThere, !nodes[0].options.isUpgraded else { return }
        let zone = book.zones[place]
        let person = zone.isPublic ? world.pick(book.people) : book.owner
        let (name, limit) = (world.pick(zone.names), world.random(1...3))
        let isReadable = zone.entries[name].map { book.mayRead(person, $0, in: zone) }
        let expected = (zone.earlier[name] ?? []).filter { book.mayRead(person, $0.entry, in: zone) }
        var refusal: ErrorCode?
        if isReadable == false { refusal = .accessDenied }
        if isReadable == nil, expected.isEmpty { refusal = .notFound }
        var found: [Workbook.Earlier] = []
        var before: ChangeTag?
        for _ in 0..<10 {
            let body = book.versions(of: name, in: zone, before: before, limit: limit)
            let page = await read("versions of \(name)", person, zone.key.database, refusedAs: refusal) {
                visit, request throws(RequestFailure) in
                try await RecordQueries(request).versions(try RecordVersionsRequest(sent: body))
            }
            guard let page else { return }
            do throws(UnexpectedAnswer) {
                let versions = try list(page.versions)
                guard versions.count <= limit else { throw UnexpectedAnswer("\(versions.count), not \(limit)") }
                for version in versions { found.append(try .init(json: version, type: book.type)) }
            } catch {
                return complainOfWorkbook("versions of \(name): \(error)")
            }
            before = found.last?.entry.tag
            guard page.moreComing else { break }
        }
        guard found.map({ $0.comparable(in: zone) }) == expected.map({ $0.comparable(in: zone) }) else {
            return complainOfWorkbook("versions of \(name) are \(found) instead of \(expected)")
        }
    }

    // MARK: Queries

    /// - Parameter place: nil for all zones of the private database.
    func queryEntries(_ place: Int?) async {
        guard let book = workbook else { return }
        let zone = place.map { book.zones[$0] }
        guard zone?.isThere ?? true else { return }
        let person = zone?.isPublic == true ? world.pick(book.people) : book.owner
        let query = book.newQuery(in: zone ?? book.zones[0], world)
        let mayRead = zone.map { book.permissions(person, in: $0, isCreator: true).contains(.read) } ?? true
        if let place, !(await settle(place, triesMax: 3)) { return }
        if place == nil {
            guard await settle(2, triesMax: 3) else { return }
        }
        guard let book = workbook else { return }
        let expected = book.found(by: query, in: place, by: person)
        let limit = world.random(1...4)
        guard let found = await found(by: query, place, person, limit: limit, isRefused: !mayRead) else { return }
        if let fault = query.fault(of: found, expected) {
            return complainOfWorkbook("\(query) by \(person.caller.stampName), \(limit) at a time: \(fault)")
        }
        if query.sorts.contains(where: { !$0.isAscending }), found.count > limit,
            query.filters.contains(where: { $0.comparator == .in })
        {
            world.met(.descendingRanges)
        }
        guard world.chance(15), let whole = await self.found(by: query, place, person, limit: 200, isRefused: false),
            workbook != nil, whole.map(\.name) != found.map(\.name)
        else { return }
        complainOfWorkbook(
            "\(query) finds \(found.map(\.name)), \(limit) at a time, and \(whole.map(\.name)) at once")
    }

    /// Follows a query to its end.
    private func found(
        by query: Workbook.Query, _ place: Int?, _ person: Workbook.Person, limit: Int, isRefused: Bool
    ) async -> [Workbook.Entry]? {
        guard let book = workbook else { return nil }
        let (zone, keys, asStrings) = (place.map { book.zones[$0] }, newKeys(), world.chance(20))
        var found: [Workbook.Entry] = []
        var marker: String?
        for _ in 0..<200 {
            let body = book.query(query, in: zone, limit: limit, marker: marker, keys: keys, asStrings: asStrings)
            let page = await read(
                "\(query) by \(person.caller.stampName)", person, (zone ?? book.zones[0]).key.database,
                refusedAs: isRefused ? .accessDenied : nil
            ) { visit, request throws(RequestFailure) in
                try await RecordQueries(request).query(try QueryRecordsRequest(sent: body))
            }
            guard let page else { return nil }
            do throws(UnexpectedAnswer) {
                let entries = try entries(page.records, book, asStrings: asStrings)
                guard entries.count <= limit, entries.count == page.count else {
                    throw UnexpectedAnswer("\(entries.count) of \(page.count), not \(limit)")
                }
                if entries.count < limit, page.continuationMarker != nil { world.met(.endedPage) }
                found += entries
            } catch {
                complainOfWorkbook("\(query): \(error)")
                return nil
            }
            marker = page.continuationMarker
            if marker == nil { return whole(found, keys, book) }
            if world.chance(3) { await useElsewhere(marker, place, person) }
        }
        complainOfWorkbook("\(query) does not end")
        return nil
    }

    /// Found records with all fields, where those that were asked for are as they must be.
    private func whole(_ found: [Workbook.Entry], _ keys: [String]?, _ book: Workbook) -> [Workbook.Entry]? {
        var whole: [Workbook.Entry] = []
        for entry in found {
            guard let known = book.zones.lazy.compactMap({ $0.entries[entry.name] }).first,
                known.showing(keys) == entry
            else {
                complainOfWorkbook("a query with \(keys ?? ["all"]) shows \(entry)")
                return nil
            }
            whole.append(known)
        }
        return whole
    }

    /// Goes on with another query where one ended.
    private func useElsewhere(_ marker: String?, _ place: Int?, _ person: Workbook.Person) async {
        guard let book = workbook else { return }
        let other = Workbook.Query(sorts: [Sort(field: "size"), Sort(field: "day"), Sort(field: "number")])
        let zone = place.map { book.zones[$0] }
        let body = book.query(other, in: zone, limit: 1, marker: marker, keys: nil, asStrings: false)
        _ = await read(
            "another query by a marker", person, (zone ?? book.zones[0]).key.database, refusedAs: .badRequest
        ) { visit, request throws(RequestFailure) in
            try await RecordQueries(request).query(try QueryRecordsRequest(sent: body))
        }
    }

    // MARK: Requests in vain

    /// Asks for what is refused whatever there is.
    func askInVain(_ place: Int) async {
        guard let book = workbook, book.zones[place].isThere else { return }
        let zone = book.zones[place]
        let names = (0...200).map { "\(zone.prefix)\($0)" }
        let deletions = names.map { Workbook.Operation(kind: .forceDelete, name: $0) }
        switch world.random(0...5) {
        case 0: await modifyInVain(deletions, place, book.owner, .badRequest)
        case 1: await modifyInVain([deletions[0], deletions[1], deletions[0]], place, book.owner, .badRequest)
        case 2: await modifyInVain([.init(kind: .delete, name: names[0])], place, book.owner, .badRequest)
        case 3 where !zone.isPublic:
            await modifyInVain([deletions[0]], place, world.pick(Array(book.people.dropFirst())), .accessDenied)
        case 4 where !zone.isPublic:
            let body = book.lookup([(names[0], nil)], in: zone, asStrings: false)
            let stranger = world.pick(Array(book.people.dropFirst()))
            _ = await read("a stranger's lookup", stranger, zone.key.database, refusedAs: .accessDenied) {
                visit, request throws(RequestFailure) in
                try await RecordQueries(request).lookUp(try LookupRecordsRequest(sent: body))
            }
        default:
            let body = book.lookup(names.map { ($0, nil) }, in: zone, asStrings: false)
            _ = await read("a lookup of 201 records", book.owner, zone.key.database, refusedAs: .badRequest) {
                visit, request throws(RequestFailure) in
                try await RecordQueries(request).lookUp(try LookupRecordsRequest(sent: body))
            }
        }
    }

    private func modifyInVain(
        _ operations: [Workbook.Operation], _ place: Int, _ person: Workbook.Person, _ code: ErrorCode
    ) async {
        guard let book = workbook else { return }
        let body = book.body(operations, in: book.zones[place], isAtomic: false)
        _ = await read("a wrong request", person, book.zones[place].key.database, refusedAs: code) {
            visit, request throws(RequestFailure) in
            try await RecordModification(request).run(try ModifyRecordsRequest(sent: body))
        }
    }
}

extension Workbook.Query {
    /// What is wrong with what was found.
    func fault(of found: [Workbook.Entry], _ expected: [Workbook.Entry]) -> String? {
        let names = found.map(\.name)
        guard names.sorted() == expected.map(\.name) else {
            return "\(names.sorted()) are found instead of \(expected.map(\.name))"
        }
        for (one, next) in zip(found, found.dropFirst()) where !allows(one, before: next) {
            return "\(one.name) comes before \(next.name) in \(names)"
        }
        return nil
    }
}

extension Workbook.Earlier {
    init(json: JSONValue, type: String) throws(UnexpectedAnswer) {
        guard let record = json["record"], case .bool(let isDeletion)? = json["isDeletion"],
            let user = json["replaced"]?["userRecordName"]?.string
        else { throw UnexpectedAnswer("no version: \(json)") }
        self.init(
            entry: try .init(json: record, type: type, asStrings: false), isDeletion: isDeletion, replacedBy: user)
    }

    /// What is known of it in any case: times are told by answers that were not lost alone.
    func comparable(in zone: Workbook.Zone) -> Self {
        var earlier = self
        (earlier.entry.created.timestamp, earlier.entry.modified.timestamp) = (0, 0)
        if !zone.isCustom { earlier.entry.tag = .blank }
        return earlier
    }
}
