import HistoryChecks
import RecordModel
import TestSupport

/// A client of some zones: saves, deletes, batches, lookups, queries and feeds, every call of which it writes down.
struct ZoneClient {
    private var base: FaultClient
    private let zones: [RecordedZone]
    /// Tags as this client saw them last, by zone and record.
    private var tags: [[String]: Version] = [:]
    private var feeds: [String: (copy: FeedCopy<[String: String]>, token: String?)] = [:]

    init(_ base: FaultClient, zones: [RecordedZone]) {
        self.base = base
        self.zones = zones
    }

    /// One request, answered or given up.
    mutating func step() async {
        let zone = zones[base.roll(zones.count)]
        switch base.roll(20) {
        case 0...7: await modify([write(zone, zone.records[base.roll(zone.records.count)])], isAtomic: false, zone)
        case 8...9: await modify(batch(zone), isAtomic: true, zone)
        case 10: await modify(batch(zone), isAtomic: false, zone)
        case 11...14: await lookUp(zone)
        case 15...16: await query(zone)
        default: if zone.isDefault { await lookUp(zone) } else { await follow(zone) }
        }
    }

    // MARK: - Changes

    private mutating func batch(_ zone: RecordedZone) -> [RecordWrite] {
        let first = base.roll(zone.records.count)
        let names = (0..<2 + base.roll(2)).map { zone.records[(first + $0) % zone.records.count] }
        return names.map { write(zone, $0) }
    }

    private mutating func write(_ zone: RecordedZone, _ name: String) -> RecordWrite {
        let fields: [String: String?] = ["text": base.value(), "number": "\(base.roll(8))"]
        guard let tag = tags[[zone.name, name]] else {
            return RecordWrite(base.roll(2) == 0 ? .create : .forceUpdate, name, fields: fields)
        }
        switch base.roll(10) {
        case 0: return RecordWrite(.create, name, fields: fields)
        case 1...2: return RecordWrite(.forceUpdate, name, fields: ["text": fields["text"] ?? nil])
        case 3: return RecordWrite(.forceReplace, name, fields: fields)
        case 4: return RecordWrite(.forceDelete, name)
        case 5: return RecordWrite(.delete, name, version: tag)
        case 6: return RecordWrite(.replace, name, fields: fields, version: tag)
        default: return RecordWrite(.update, name, fields: ["text": fields["text"] ?? nil], version: tag)
        }
    }

    private mutating func modify(_ writes: [RecordWrite], isAtomic: Bool, _ zone: RecordedZone) async {
        let isAtomic = isAtomic && !zone.isDefault
        let operations = writes.map(\.operation).joined(separator: ", ")
        let body =
            #"{\#(zone.member)"operations": [\#(operations)]\#(zone.isDefault ? "" : #", "atomic": \#(isAtomic)"#)}"#
        let id = zone.begin(.modify(writes, isAtomic: isAtomic), client: base.number)
        let final = await base.change("records/modify", body) { answer in
            answer.json["records"]?.array?.allSatisfy { WriteOutcome.isFinal($0) } ?? Self.isRefusal(answer, zone)
        }
        guard let (answer, attempts) = final else {
            if base.wasNeverSent { zone.withdraw(id) }
            return
        }
        let records = answer.json["records"]?.array ?? []
        let items = zip(writes, records).compactMap { WriteOutcome($1, isRepeated: attempts > 1) }
        guard items.count == writes.count else { return zone.complain("\(writes) was answered \(answer)") }
        zone.end(id, answer.status == 200 ? .items(items) : .batchFailed(items))
        for (write, (item, record)) in zip(writes, zip(items, records)) {
            learn(write, item, record, isRepeated: attempts > 1, zone)
        }
    }

    private mutating func learn(
        _ write: RecordWrite, _ item: WriteOutcome, _ json: JSONValue, isRepeated: Bool, _ zone: RecordedZone
    ) {
        switch item {
        case .saved(let version):
            tags[[zone.name, write.name]] = version
            // A repetition is told the tag of its save. Where the record was changed since, it is shown what it sent,
            // not the whole of what the record was then.
            if !isRepeated { zone.see(write.name, RecordCopy(json), client: base.number) }
        case .deleted: tags[[zone.name, write.name]] = nil
        case .exists(let record), .conflict(let record):
            zone.see(write.name, record, client: base.number)
            if let record { tags[[zone.name, write.name]] = record.version }
        case .notFound: tags[[zone.name, write.name]] = nil
        case .notDone: break
        }
    }

    /// Whether a request was refused as it stands, which none of these may be.
    private static func isRefusal(_ answer: TestClient.Answer, _ zone: RecordedZone) -> Bool {
        (400..<500).contains(answer.status) && answer.status != 429 && answer.status != 408
    }

    // MARK: - Reads

    private mutating func lookUp(_ zone: RecordedZone) async {
        let first = base.roll(zone.records.count)
        let names = (0..<1 + base.roll(3)).map { zone.records[(first + $0) % zone.records.count] }
        let wanted = names.map { #"{"recordName": "\#($0)"}"# }.joined(separator: ", ")
        let id = zone.begin(.lookup(names), client: base.number)
        let body = #"{\#(zone.member)"records": [\#(wanted)]}"#
        guard let records = await read("records/lookup", body, zone), records.count == names.count else {
            return zone.withdraw(id)
        }
        let copies = records.map { RecordCopy($0) }
        for (copy, json) in zip(copies, records) where copy == nil && json["serverErrorCode"]?.string != "NOT_FOUND" {
            return zone.withdraw(id)
        }
        zone.end(id, .records(copies))
        for (name, copy) in zip(names, copies) {
            zone.see(name, copy, client: base.number)
            tags[[zone.name, name]] = copy?.version
        }
    }

    private mutating func query(_ zone: RecordedZone) async {
        let number = "\(base.roll(8))"
        let id = zone.begin(.query(field: "number", equals: number), client: base.number)
        let filter = #"{"fieldName": "number", "comparator": "EQUALS", "fieldValue": {"value": \#(number)}}"#
        let body = #"{\#(zone.member)"query": {"recordType": "Note", "filterBy": [\#(filter)]}}"#
        guard let records = await read("records/query", body, zone) else { return zone.withdraw(id) }
        var found: [String: RecordCopy] = [:]
        for record in records {
            guard let name = record["recordName"]?.string, let copy = RecordCopy(record) else { continue }
            found[name] = copy
            zone.see(name, copy, client: base.number)
        }
        if found.count != records.count { zone.complain("a query was answered \(records)") }
        zone.end(id, .view(found))
    }

    /// The records of an answer; nil where there is none.
    private mutating func read(_ action: String, _ body: String, _ zone: RecordedZone) async -> [JSONValue]? {
        guard let answer = await base.ask(action, body, node: base.roll(base.nodes)) else { return nil }
        if Self.isRefusal(answer, zone) { zone.complain("\(action) \(body) was answered \(answer)") }
        return answer.status == 200 ? answer.json["records"]?.array : nil
    }

    /// Follows the zone's feed to its end, as far as answers come.
    private mutating func follow(_ zone: RecordedZone) async {
        for _ in 0..<20 {
            var (copy, token) = feeds[zone.name] ?? (FeedCopy(), nil)
            let since = token.map { #""syncToken": "\#($0)", "# } ?? ""
            let id = zone.begin(.view, client: base.number)
            let body = #"{\#(zone.member)\#(since)"resultsLimit": \#(1 + base.roll(6))}"#
            guard let answer = await base.ask("records/changes", body, node: base.roll(base.nodes)),
                answer.status == 200, let records = answer.json["records"]?.array,
                case .bool(let hasMore)? = answer.json["moreComing"]
            else { return zone.withdraw(id) }
            let entries = records.compactMap { FeedCopy<[String: String]>.Entry($0) }
            if entries.count != records.count { zone.complain("the feed has \(records)") }
            for entry in entries {
                zone.see(entry.name, entry.content.map { RecordCopy($0, entry.version) }, client: base.number)
            }
            do {
                try copy.take(entries)
            } catch {
                zone.complain("client \(base.number), \(zone.name): \(error)")
            }
            token = answer.json["syncToken"]?.string
            feeds[zone.name] = (copy, token)
            guard hasMore else { return zone.end(id, .view(copy.records)) }
            zone.withdraw(id)
        }
    }
}

extension RecordedZone {
    /// The zone in a request's body.
    fileprivate var member: String { isDefault ? "" : #""zoneID": {"zoneName": "\#(name)"}, "# }
}

extension RecordWrite {
    /// The operation in a request's body.
    fileprivate var operation: String {
        var members = [#""recordName": "\#(name)", "recordType": "Note""#]
        if let version {
            members.append(
                #""recordChangeTag": "\#(ChangeTag(incarnation: version.incarnation, sequence: version.sequence))""#)
        }
        if let text = fields["text"] ?? nil {
            let number = (fields["number"] ?? nil).map { #", "number": {"value": \#($0)}"# } ?? ""
            members.append(#""fields": {"text": {"value": "\#(text)"}\#(number)}"#)
        }
        return #"{"operationType": "\#(kind.rawValue)", "record": {\#(members.joined(separator: ", "))}}"#
    }
}

extension WriteOutcome {
    /// Whether an item of an answer says what became of the change.
    static func isFinal(_ json: JSONValue) -> Bool {
        switch json["serverErrorCode"]?.string {
        case nil, "CONFLICT", "EXISTS", "NOT_FOUND", "ATOMIC_ERROR": true
        default: false
        }
    }

    /// An item of an answer. A repeated request's may show the clashing record of another moment.
    init?(_ json: JSONValue, isRepeated: Bool) {
        let clash = isRepeated ? nil : json["serverRecord"].flatMap { RecordCopy($0) }
        switch json["serverErrorCode"]?.string {
        case "CONFLICT": self = .conflict(clash)
        case "EXISTS": self = .exists(clash)
        case "NOT_FOUND": self = .notFound
        case "ATOMIC_ERROR": self = .notDone
        case nil:
            if json["deleted"] == .bool(true) {
                self = .deleted
            } else if let version = Version(json["recordChangeTag"]?.string) {
                self = .saved(version)
            } else {
                return nil
            }
        default: return nil
        }
    }
}

extension FeedCopy<[String: String]>.Entry {
    /// An entry of changes.
    fileprivate init?(_ json: JSONValue) {
        guard let name = json["recordName"]?.string, let version = Version(json["recordChangeTag"]?.string) else {
            return nil
        }
        if json["deleted"] == .bool(true) {
            self.init(name, version, nil)
        } else if let copy = RecordCopy(json) {
            self.init(name, version, copy.content)
        } else {
            return nil
        }
    }
}
