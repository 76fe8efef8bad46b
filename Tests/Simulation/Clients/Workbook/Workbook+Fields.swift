import RecordModel

// The fields of a workbook's records: one of each kind, with few values, so that many are equal.
extension Workbook {
    static let secret = "secret"
    static let owner = "owner"
    static let owners = "owners"
    static let rank = "rank"
    static let tags = "tags"
    static let place = "place"
    static let parent = SystemField.parent.rawValue

    static let fieldDefinitions: [FieldDefinition] = [
        FieldDefinition(name: "number", type: FieldType(.int64), indexes: [.queryable, .sortable]),
        FieldDefinition(name: rank, type: FieldType(.int64), indexes: [.queryable, .sortable]),
        FieldDefinition(name: "size", type: FieldType(.double), indexes: [.queryable, .sortable]),
        FieldDefinition(name: "day", type: FieldType(.timestamp), indexes: [.queryable, .sortable]),
        FieldDefinition(name: "label", type: FieldType(.string), indexes: [.queryable, .sortable, .searchable]),
        FieldDefinition(name: "text", type: FieldType(.string), indexes: [.searchable]),
        FieldDefinition(name: "data", type: FieldType(.bytes), indexes: [.queryable, .sortable]),
        FieldDefinition(name: tags, type: FieldType(.string, isList: true), indexes: [.queryable]),
        FieldDefinition(name: place, type: FieldType(.location), indexes: [.queryable, .sortable]),
        FieldDefinition(name: owner, type: FieldType(.reference), indexes: [.queryable]),
        FieldDefinition(name: owners, type: FieldType(.reference, isList: true), indexes: [.queryable]),
        FieldDefinition(name: "plain", type: FieldType(.string)),
        FieldDefinition(name: secret, type: FieldType(.string, isEncrypted: true)),
        FieldDefinition(name: "___recordID", type: FieldType(.reference), indexes: [.queryable]),
        FieldDefinition(name: "___createdBy", type: FieldType(.reference), indexes: [.queryable]),
        FieldDefinition(name: "___modifiedBy", type: FieldType(.reference), indexes: [.queryable]),
        FieldDefinition(name: "___createTime", type: FieldType(.timestamp), indexes: [.queryable, .sortable]),
        FieldDefinition(name: "___modTime", type: FieldType(.timestamp), indexes: [.queryable, .sortable]),
        FieldDefinition(name: parent, type: FieldType(.reference), indexes: [.queryable]),
    ]

    /// Those that saves set, but for the rank.
    static let fieldNames = fieldDefinitions.map(\.name).filter { !$0.hasPrefix("___") && $0 != rank } + [parent]

    static let types = Dictionary(uniqueKeysWithValues: fieldDefinitions.map { ($0.name, $0.type) })
    static let places = [(0.0, 0.0), (0, 1), (0, 3), (2, 0), (10, 10), (-3, -2)].map {
        Location(latitude: $0, longitude: $1)
    }
    /// Metres that no two of the places are about apart.
    static let distances = [50_000.0, 150_000, 300_000, 1_000_000]
    static let words = ["red", "reddish", "rust", "blue", "sky"]
    static let members = ["x", "xy", "y", "z"]

    /// A record's own number, by which those are ordered that are equal otherwise.
    func rank(of name: String) -> Int64 {
        for (place, zone) in zones.enumerated() {
            if let number = zone.names.firstIndex(of: name) { return Int64((number * 5) % Self.namesMax * 10 + place) }
        }
        return -1
    }

    /// A value that a field may have.
    func newValue(_ field: String, in zone: Zone, _ world: World) -> FieldValue {
        func pick<Value>(_ values: [Value]) -> Value { world.pick(values) }
        switch field {
        case Self.rank: return .int64(Int64(world.random(0...70)))
        case "number": return .int64(pick([.min, -5, 0, 1, 2, .max]))
        case "size": return .double(pick([-250, -1.5, -0.0, 0, 0.25, 2, 1e9]))
        case "day": return .timestamp(pick([-1_000, -1, 0, 1_000, 1_700_000_000_000]))
        case "label": return .string(pick(Self.words + ["Red sky"]))
        case "text": return .string([pick(Self.words), pick(Self.words).uppercased()].joined(separator: ", "))
        case "data": return .bytes(pick([[], [0], [0, 255], [1]]))
        case Self.tags: return .list(.string, (0..<world.random(0...3)).map { _ in .string(pick(Self.members)) })
        case Self.place: return .location(pick(Self.places))
        case Self.owner: return .reference(newReference(in: zone, world))
        case Self.owners:
            return .list(.reference, (0..<world.random(1...2)).map { _ in .reference(newReference(in: zone, world)) })
        case Self.parent: return .reference(Reference(recordName: pick(zone.names)))
        case Self.secret: return .encrypted(.string(pick(Self.words)))
        default:
            return .string(pick(["", "\u{1}\u{1}\u{1}", "\"plain\" \u{e9}", String(repeating: "long ", count: 40)]))
        }
    }

    private func newReference(in zone: Zone, _ world: World) -> Reference {
        // Most refer to what is there.
        let there = zone.entries.keys.sorted()
        let name = there.isEmpty || world.chance(15) ? world.pick(zone.names) : world.pick(there)
        return Reference(recordName: name, action: world.pick([.none, .deleteSelf, .deleteSelf, .validate]))
    }
}

extension FieldValue {
    /// The references that it has.
    var references: [Reference] {
        switch self {
        case .reference(let reference): [reference]
        case .list(_, let members): members.flatMap(\.references)
        default: []
        }
    }

    /// Reads a value as answers show it.
    /// - Parameter asStrings: whether numbers are to be written as strings.
    init(shown json: JSONValue, _ type: FieldType, asStrings: Bool) throws(UnexpectedAnswer) {
        let unreadable = UnexpectedAnswer("\(json) as \(type.webName)")
        if type.isList {
            guard let members = json.array else { throw unreadable }
            var values: [FieldValue] = []
            for member in members {
                values.append(try FieldValue(shown: member, FieldType(type.scalar), asStrings: asStrings))
            }
            self = .list(type.scalar, values)
            return
        }
        var json = json
        if asStrings, [.int64, .double, .timestamp].contains(type.scalar) {
            guard let text = json.string, let number = JSONParser.parseNumber(text) else { throw unreadable }
            json = number
        }
        let value: FieldValue? =
            switch (type.scalar, json) {
            case (.string, .string(let text)): .string(text)
            case (.int64, .integer(let number)): .int64(number)
            case (.timestamp, .integer(let number)): .timestamp(number)
            case (.double, .number(let number)): .double(number)
            case (.double, .integer(let number)): .double(Double(number))
            case (.bytes, .string(let text)): Base64.decode(text).map { .bytes($0) }
            case (.location, .object): Self.location(json)
            case (.reference, .object): Self.reference(json)
            default: nil
            }
        guard let value else { throw unreadable }
        self = type.isEncrypted ? .encrypted(value) : value
    }

    private static func location(_ json: JSONValue) -> FieldValue? {
        func number(_ key: String) -> Double? {
            switch json[key] {
            case .integer(let number)?: Double(number)
            case .number(let number)?: number
            default: nil
            }
        }
        guard let latitude = number("latitude"), let longitude = number("longitude") else { return nil }
        return .location(Location(latitude: latitude, longitude: longitude))
    }

    private static func reference(_ json: JSONValue) -> FieldValue? {
        guard let name = json["recordName"]?.string, let action = json["action"]?.string,
            let known = Reference.Action(rawValue: action), json["zoneID"] == nil
        else { return nil }
        return .reference(Reference(recordName: name, action: known))
    }
}

extension Workbook.Entry {
    /// Reads a record as answers show it.
    init(json: JSONValue, type: String, asStrings: Bool) throws(UnexpectedAnswer) {
        guard let name = json["recordName"]?.string, json["recordType"]?.string == type,
            case .object(let members)? = json["fields"], json["deleted"] == .bool(false),
            let tag = json["recordChangeTag"]?.string.flatMap(ChangeTag.init),
            let created = json["created"].flatMap(Stamp.init(shown:)),
            let modified = json["modified"].flatMap(Stamp.init(shown:))
        else { throw UnexpectedAnswer("no record: \(json)") }
        var fields: [String: FieldValue] = [:]
        for member in members {
            guard let type = Workbook.types[member.key], let value = member.value["value"],
                let word = member.value["type"]?.string,
                (member.value["isEncrypted"] == .bool(true)) == type.isEncrypted,
                word == type.webName || word == "UNKNOWN_LIST" && value.array?.isEmpty == true
            else { throw UnexpectedAnswer("field \(member.key) is \(member.value)") }
            fields[member.key] = try FieldValue(shown: value, type, asStrings: asStrings)
        }
        if let parent = json["parent"]?["recordName"]?.string {
            fields[Workbook.parent] = .reference(Reference(recordName: parent))
        }
        self.init(name: name, fields: fields, tag: tag, created: created, modified: modified)
    }

    init(_ record: RecordModel.Record) {
        let fields = Dictionary(uniqueKeysWithValues: record.fields.all.map { ($0.name, $0.value) })
        self.init(
            name: record.name, fields: fields, tag: record.changeTag, created: record.created,
            modified: record.modified)
    }

    /// As it is shown where some fields are asked for; the parent comes in any case.
    func showing(_ keys: [String]?) -> Self {
        guard let keys else { return self }
        var entry = self
        entry.fields = fields.filter { keys.contains($0.key) || $0.key == Workbook.parent }
        return entry
    }
}

extension Stamp {
    fileprivate init?(shown json: JSONValue) {
        guard case .integer(let time)? = json["timestamp"], let user = json["userRecordName"]?.string else {
            return nil
        }
        self.init(timestamp: time, user: user)
    }
}
