import HistoryChecks
import RecordModel

/// A zone and a record type that one client alone uses, one request after the other: so it knows what every answer must
/// be, also where a history of several clients could not say.
struct Notebook {
    /// What a record of the notebook holds.
    struct Note: Hashable, Sendable {
        /// Few values, so that many are equal.
        var number: Int64
        /// The record that this one is deleted with.
        var owner: String?
        /// Indexed at times.
        var label: String?
        /// Of a field that saves bring, and the schema loses at times.
        var extra: String?
    }

    /// An earlier version of a record.
    struct Earlier: Hashable, Sendable {
        var note: Note
        var isDeletion: Bool
    }

    /// What a batch does to a record; nil deletes it.
    typealias Change = (name: String, note: Note?)

    static let names = (0..<10).map { "n\($0)" }
    static let labels = ["red", "blue"]
    static let (number, owner, label, extra, rank) = ("number", "owner", "label", "extra", "rank")

    /// Another one for each record, by which those are ordered that have one number.
    static func rank(of name: String) -> Int { (names.firstIndex(of: name) ?? 0) * 7 % names.count }

    let zone: String
    let type: String
    /// Whether the directory has the type and its shard the zone.
    var isMade = false
    private(set) var notes: [String: Note] = [:]
    /// What each record was before, the newest first, and whether it was deleted then.
    private(set) var versions: [String: [Earlier]] = [:]
    var isLabelIndexed = false
    /// What the zone's feed told so far, and where it goes on.
    var copy = FeedCopy<Note>()
    var token: String? {
        didSet { firstToken = firstToken ?? token }
    }
    /// The first token of this life of the zone, as a device has it that was off since.
    private var firstToken: String?
    /// A token of an earlier life of the zone.
    private(set) var tokenBefore: String?
    /// Whether the zone changed since the feed of its database was last followed to its end.
    var hasNews = false

    init(client: Int, serial: Int) {
        zone = "notes\(client)-\(serial)"
        type = "Note\(client)x\(serial)"
    }

    /// Its record type as the client imports it: without the field that saves bring.
    var recordType: RecordType {
        RecordType(
            name: type,
            fields: [
                FieldDefinition(name: Self.number, type: FieldType(.int64), indexes: [.queryable, .sortable]),
                FieldDefinition(name: Self.rank, type: FieldType(.int64), indexes: [.sortable]),
                FieldDefinition(name: Self.owner, type: FieldType(.reference)),
                FieldDefinition(
                    name: Self.label, type: FieldType(.string), indexes: isLabelIndexed ? [.queryable] : []),
            ], grants: RecordType.defaultGrants)
    }

    // MARK: What happens to it

    /// A batch was done: operation after operation.
    /// - Parameter versionsKept: of each record.
    mutating func did(_ changes: [Change], versionsKept: Int) {
        for (name, note) in changes {
            // Where there is nothing to delete, nothing changes.
            if note != nil || notes[name] != nil { hasNews = true }
            if let note {
                if let old = notes[name] { keep(Earlier(note: old, isDeletion: false), name) }
                notes[name] = note
            } else {
                delete(name)
            }
        }
        versions = versions.mapValues { Array($0.prefix(versionsKept)) }
    }

    private mutating func keep(_ earlier: Earlier, _ name: String) {
        versions[name, default: []].insert(earlier, at: 0)
    }

    private mutating func delete(_ name: String) {
        guard let old = notes.removeValue(forKey: name) else { return }
        keep(Earlier(note: old, isDeletion: true), name)
        for other in notes.keys.sorted() where notes[other]?.owner == name { delete(other) }
    }

    /// The schema lost the field that saves bring.
    mutating func loseExtras() {
        for name in notes.keys { notes[name]?.extra = nil }
        versions = versions.mapValues { versions in
            versions.map { Earlier(note: $0.note.without(\.extra), isDeletion: $0.isDeletion) }
        }
    }

    /// The field that the schema lost came back with a save.
    mutating func keepExtra(of name: String, _ extra: String?) { notes[name]?.extra = extra }

    /// The zone was deleted and made again.
    mutating func beginAgain() {
        tokenBefore = firstToken ?? tokenBefore
        firstToken = nil
        notes = [:]
        versions = [:]
        forgetFeed()
        hasNews = true
    }

    mutating func forgetFeed() {
        copy = FeedCopy()
        token = nil
    }

    // MARK: Forms

    func body(_ changes: [Change], isAtomic: Bool) -> [UInt8] {
        let operations = changes.map { name, note in
            guard let note else {
                return #"{"operationType":"forceDelete","record":{"recordName":"\#(name)"}}"#
            }
            var fields = [
                #""\#(Self.number)":{"value":\#(note.number)}"#,
                #""\#(Self.rank)":{"value":\#(Self.rank(of: name))}"#,
            ]
            if let owner = note.owner {
                fields.append(#""\#(Self.owner)":{"value":{"recordName":"\#(owner)","action":"DELETE_SELF"}}"#)
            }
            if let label = note.label { fields.append(#""\#(Self.label)":{"value":"\#(label)"}"#) }
            if let extra = note.extra { fields.append(#""\#(Self.extra)":{"value":"\#(extra)"}"#) }
            return
                #"{"operationType":"forceReplace","record":{"recordName":"\#(name)","recordType":"\#(type)","fields":{\#(fields.joined(separator: ","))}}}"#
        }
        return Array(
            #"{"operations":[\#(operations.joined(separator: ","))],"zoneID":{"zoneName":"\#(zone)"},"atomic":\#(isAtomic)}"#
                .utf8)
    }

    func versions(of name: String) -> [UInt8] {
        Array(#"{"recordName":"\#(name)","zoneID":{"zoneName":"\#(zone)"}}"#.utf8)
    }

    func lookup() -> [UInt8] {
        let list = Self.names.map { #"{"recordName":"\#($0)"}"# }.joined(separator: ",")
        return Array(#"{"records":[\#(list)],"zoneID":{"zoneName":"\#(zone)"}}"#.utf8)
    }

    /// - Parameters:
    ///   - filter: comparator, field and value as JSON.
    ///   - isAscending: by number, and then by rank; nil for no order.
    func query(
        _ filter: (comparator: String, field: String, value: String), isAscending: Bool?, limit: Int, marker: String?
    ) -> [UInt8] {
        let rank = #"{"fieldName":"\#(Self.rank)","ascending":true}"#
        let sort =
            isAscending.map { #","sortBy":[{"fieldName":"\#(Self.number)","ascending":\#($0)},\#(rank)]"# } ?? ""
        let rest = marker.map { #","continuationMarker":"\#($0)""# } ?? ""
        return Array(
            #"{"query":{"recordType":"\#(type)","filterBy":[{"fieldName":"\#(filter.field)","comparator":"\#(filter.comparator)","fieldValue":{"value":\#(filter.value)}}]\#(sort)},"zoneID":{"zoneName":"\#(zone)"},"resultsLimit":\#(limit)\#(rest)}"#
                .utf8)
    }

    func changes(after token: String?, limit: Int, isReverse: Bool) -> [UInt8] {
        let start = token.map { #","syncToken":"\#($0)""# } ?? ""
        return Array(
            #"{"zoneID":{"zoneName":"\#(zone)"},"resultsLimit":\#(limit),"reverse":\#(isReverse)\#(start)}"#.utf8)
    }

    func change(isCreation: Bool) -> [UInt8] {
        let type = isCreation ? "create" : "delete"
        return Array(
            #"{"operations":[{"operationType":"\#(type)","zone":{"zoneID":{"zoneName":"\#(zone)"}}}]}"#.utf8)
    }
}

extension Notebook.Note {
    fileprivate func without(_ field: WritableKeyPath<Self, String?>) -> Self {
        var note = self
        note[keyPath: field] = nil
        return note
    }

    init(json: JSONValue) throws(UnexpectedAnswer) {
        guard let fields = json["fields"], case .integer(let number)? = fields[Notebook.number]?["value"] else {
            throw UnexpectedAnswer("no note: \(json)")
        }
        self.number = number
        owner = fields[Notebook.owner]?["value"]?["recordName"]?.string
        label = fields[Notebook.label]?["value"]?.string
        extra = fields[Notebook.extra]?["value"]?.string
    }
}

extension Notebook.Earlier {
    init(json: JSONValue) throws(UnexpectedAnswer) {
        guard let record = json["record"], case .bool(let isDeletion)? = json["isDeletion"] else {
            throw UnexpectedAnswer("no version: \(json)")
        }
        self.init(note: try Notebook.Note(json: record), isDeletion: isDeletion)
    }
}

extension [UInt8] {
    /// The notes of an answer, in order; those that are not there, or were deleted, as nil.
    func notes() throws(UnexpectedAnswer) -> [(name: String, note: Notebook.Note?, version: Version?)] {
        guard let elements = (try? JSONParser.parse(self))?.array else { throw UnexpectedAnswer("no array") }
        var notes: [(name: String, note: Notebook.Note?, version: Version?)] = []
        for element in elements {
            guard let name = element["recordName"]?.string else { throw UnexpectedAnswer("no name: \(element)") }
            let version = element["recordChangeTag"]?.string.flatMap(ChangeTag.init).map { Version($0) }
            if let code = element["serverErrorCode"]?.string, code != ErrorCode.notFound.rawValue {
                throw UnexpectedAnswer("\(element)")
            }
            let isThere = element["serverErrorCode"] == nil && element["deleted"] != .bool(true)
            notes.append((name, isThere ? try Notebook.Note(json: element) : nil, version))
        }
        return notes
    }
}
