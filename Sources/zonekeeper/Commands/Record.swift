import ArgumentParser
import RecordModel
import ServiceClient

struct RecordCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "record", abstract: "Save, get, query, follow, delete, restore and import records.",
        subcommands: [
            RecordSaveCommand.self, RecordGetCommand.self, RecordQueryCommand.self, RecordChangesCommand.self,
            RecordDeleteCommand.self, RecordVersionsCommand.self, RecordRestoreCommand.self, RecordImportCommand.self,
        ])
}

struct RecordSaveCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "save", abstract: "Create a record; with --tag or --force, change one.",
        discussion: """
            Fields are field=value, which the server converts where the schema's type is STRING, INT64 or DOUBLE, or \
            field:TYPE=value with \
            STRING, INT64, DOUBLE, TIMESTAMP, BYTES (base64), LOCATION (latitude,longitude), REFERENCE (a record \
            name), ASSET (@FILE, which is sent, or record:NAME/FIELD, what another record of the zone has), one of \
            these with _LIST, DELETE_SELF (a reference; the record goes when its target goes), VALIDATE (a reference; the target cannot go), JSON or NULL, which clears the field.
            """)

    @OptionGroup var options: ClientOptions
    @OptionGroup var place: RecordOptions

    @Option(help: "The record type.")
    var type: String

    @Option(help: "The record name; without one the server makes one.")
    var name: String?

    @Option(help: "Change the record, if this is still its change tag.")
    var tag: String?

    @Option(help: "The name of the parent record, of the same zone; '' clears it.")
    var parent: String?

    @Flag(help: "Change the record whatever its change tag, or create it.")
    var force = false

    @Option(
        help: ArgumentHelp("Read the fields from a JSON object in this file; `-` is standard input.", valueName: "file")
    )
    var jsonFile: String?

    @Argument(help: ArgumentHelp("Fields.", valueName: "field=value"))
    var fields: [String] = []

    func validate() throws {
        if jsonFile != nil, !fields.isEmpty {
            throw ValidationError("either fields or --json-file is expected, not both")
        }
        if tag != nil, force { throw ValidationError("either --tag or --force is expected, not both") }
        if tag != nil || force, name == nil {
            throw ValidationError("--tag and --force need --name, the record to change")
        }
        for field in fields { _ = try FieldArgument(parsing: field) }
    }

    func run(on connection: Connection) async throws {
        let given = try await given(on: connection)
        let kind = tag != nil ? "update" : force ? "forceUpdate" : "create"
        let record = JSONValue.members([
            "recordName": (name ?? given.recordName).map { .string($0) }, "recordType": .string(type),
            "recordChangeTag": .given(tag),
            "parent": parent.map { $0.isEmpty ? .null : .members(["recordName": .string($0)]) } ?? given.parent,
            "fields": given.fields,
        ])
        let response = try await connection.send(
            try place.modify([.members(["operationType": .string(kind), "record": record])], on: connection))
        let records = try response.records()
        try ItemFailures.report(response, asJSON: options.json, records) { saved in
            "saved \(saved.text("recordName")) (\(saved.text("recordType"))), tag \(saved.text("recordChangeTag"))"
        }
    }

    private func given(on connection: Connection) async throws -> FieldsObject {
        guard let jsonFile else {
            let fields = try fields.map { try FieldArgument(parsing: $0) }
            let sent = try await AssetUploads(place: place, recordType: type, recordName: name).send(
                fields, on: connection)
            return FieldsObject(fields: sent.map { JSONValue.Member($0.name, $0.json) })
        }
        let text = try InputFile.read(jsonFile)
        let json = try Result { () throws(JSONError) in try JSONParser.parse(Array(text.utf8)) }
            .mapError { CommandFailure("\(jsonFile) is not JSON: \($0)") }.get()
        return try FieldsObject(json)
    }
}

struct RecordGetCommand: ClientCommand {
    static let configuration = CommandConfiguration(commandName: "get", abstract: "Print records, each by its name.")

    @OptionGroup var options: ClientOptions
    @OptionGroup var place: RecordOptions

    @Argument(help: "Record names, at most 200.")
    var names: [String]

    func run(on connection: Connection) async throws {
        let records = names.map { JSONValue.members(["recordName": .string($0)]) }
        let response = try await connection.send(
            try place.request("records/lookup", ["records": .array(records)], on: connection))
        let found = try response.records()
        try ItemFailures.report(response, asJSON: options.json, found, RecordTable.details)
    }
}

struct RecordDeleteCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete", abstract: "Delete records, each by its name.")

    @OptionGroup var options: ClientOptions
    @OptionGroup var place: RecordOptions

    @Option(help: "Delete the one record only if this is still its change tag.")
    var tag: String?

    @Argument(help: "Record names, at most 200.")
    var names: [String]

    func validate() throws {
        if tag != nil, names.count != 1 { throw ValidationError("--tag is for one record") }
    }

    func run(on connection: Connection) async throws {
        let operations = names.map { name in
            JSONValue.members([
                "operationType": .string(tag == nil ? "forceDelete" : "delete"),
                "record": .members(["recordName": .string(name), "recordChangeTag": .given(tag)]),
            ])
        }
        let response = try await connection.send(try place.modify(operations, on: connection))
        let records = try response.records()
        try ItemFailures.report(response, asJSON: options.json, records) { "deleted \($0.text("recordName"))" }
    }
}

struct RecordChangesCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "changes", abstract: "List what changed in a zone since a token, and the token to go on from.",
        discussion: """
            Pages are followed to the end. Each record stands once, as it is now, in the order of its latest \
            change; deleted ones too. The zone is a custom one of the user's private database: the default zone \
            has no change feed.
            """)

    @OptionGroup var options: ClientOptions

    @Option(help: "The zone.")
    var zone: String

    @Option(help: ArgumentHelp("The token of the last time.", valueName: "token"))
    var token: String?

    @Flag(help: "Everything from the zone's beginning, as without --token.")
    var fromStart = false

    @Flag(help: "The newest change first.")
    var reverse = false

    @Option(parsing: .singleValue, help: "Only records of this type; may be repeated.")
    var type: [String] = []

    @Option(help: ArgumentHelp("The fields to print, with commas between them.", valueName: "fields"))
    var desiredKeys: String?

    func validate() throws {
        if fromStart, token != nil { throw ValidationError("either --from-start or --token is expected, not both") }
    }

    func run(on connection: Connection) async throws {
        let (records, token) = try await changes(on: connection)
        try show(
            .members(["records": .array(records), "syncToken": .string(token)]),
            "\(records.isEmpty ? "no changes" : ChangesTable.text(records))\ntoken \(token)")
    }

    /// Page after page, to the end.
    private func changes(on connection: Connection) async throws -> (records: [JSONValue], token: String) {
        let keys = desiredKeys.map { $0.split(separator: ",").map { JSONValue.string(String($0)) } }
        var records: [JSONValue] = []
        var token = token
        while true {
            let request = JSONValue.members([
                "zoneID": ZoneRequests.id(zone), "syncToken": .given(token),
                "reverse": reverse ? .bool(true) : nil, "desiredKeys": keys.map { .array($0) },
                "desiredRecordTypes": type.isEmpty ? nil : .strings(type),
            ])
            let response = try await connection.send(
                try connection.request("private", "changes/zone", .members(["zones": .array([request])]))
            ).checked()
            let page = try needed(response.entries("zones").first, "zone")
            if let code = page["serverErrorCode"]?.string { throw CommandFailure("\(code): \(page.text("reason"))") }
            let next = try needed(page["syncToken"]?.string, "sync token")
            records += page["records"]?.array ?? []
            token = next
            if page["moreComing"] != .bool(true) { return (records, next) }
        }
    }
}

enum ChangesTable {
    static func text(_ records: [JSONValue]) -> String {
        let columns: [Table.Column] = [
            .init("CHANGE", { $0["deleted"] == .bool(true) ? "deleted" : "saved" }), .text("RECORD NAME", "recordName"),
            .text("TYPE", "recordType"), .text("TAG", "recordChangeTag"),
            .init("MODIFIED", { $0["modified"]?.time("timestamp") ?? "" }),
            .init("FIELDS", { fields(of: $0).shortened(to: 80) }),
        ]
        return Table(records, columns).text
    }

    static func fields(of record: JSONValue) -> String {
        (record["fields"]?.members ?? []).map { "\($0.key)=\(RecordTable.value($0.value))" }.joined(separator: " ")
    }
}

struct RecordOptions: ParsableArguments {
    enum Database: String, ExpressibleByArgument, CaseIterable {
        case `public`
        case `private`
    }

    @Option(help: "The container's database: everybody's, or the session's user's.")
    var database = Database.public

    @Option(help: "The zone; only the private database has others than the default one.")
    var zone = ZoneKey.defaultZoneName

    var zoneID: JSONValue { .members(["zoneName": .string(zone)]) }

    /// A request about records of the zone.
    /// - Parameter isZoneWide: whether it names no zone, as it is about all of them.
    func request(
        _ action: String, _ members: KeyValuePairs<String, JSONValue?>, isZoneWide: Bool = false,
        on connection: Connection
    ) throws -> ServiceRequest {
        let zone = isZoneWide ? [] : [JSONValue.Member("zoneID", zoneID)]
        return try connection.request(database.rawValue, action, .object(zone + JSONValue.members(members).members))
    }

    /// A request that changes records; it carries an idempotency key.
    func modify(_ operations: [JSONValue], on connection: Connection) throws -> ServiceRequest {
        var request = try request("records/modify", ["operations": .array(operations)], on: connection)
        request.idempotencyKey = IdempotencyKeys.make()
        return request
    }
}

extension ServiceResponse {
    /// The records of an answer, those that failed among them.
    /// - Throws: `CommandFailure` if the request failed as a whole. Of an atomic batch it says what failed in it.
    func records() throws(CommandFailure) -> [JSONValue] {
        if status == 400, let records = (try? json())?["records"]?.array {
            let reasons = Self.failures(in: records).filter { !$0.hasPrefix("ATOMIC_ERROR") }
            throw CommandFailure((reasons.isEmpty ? ["ATOMIC_ERROR"] : reasons).joined(separator: "\nerror: "))
        }
        return try checked().json()["records"]?.array ?? []
    }
}

/// Records or zones of an answer, some of which may have failed.
enum ItemFailures {
    /// Prints the answer, or a line for each record that did not fail.
    /// - Throws: `ExitCode` after each failure has been said.
    static func report(
        _ response: ServiceResponse, asJSON: Bool, _ records: [JSONValue], _ text: (JSONValue) -> String
    ) throws {
        if asJSON {
            Console.print(response.body)
        } else {
            for record in records where record["serverErrorCode"] == nil { print(text(record)) }
        }
        try tell(in: records)
    }

    /// - Throws: `ExitCode` after each failure has been said.
    static func tell(in items: [JSONValue]) throws {
        let failures = ServiceResponse.failures(in: items)
        for failure in failures { Console.error(failure) }
        if !failures.isEmpty { throw ExitCode.failure }
    }
}

struct RecordVersionsCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "versions", abstract: "List what a record was before it was changed or deleted, the newest first.",
        discussion: """
            There are versions where the container's limit recordVersionDays is above 0. A deleted record has its own, \
            too, until they are too old.
            """)

    @OptionGroup var options: ClientOptions
    @OptionGroup var place: RecordOptions

    @Argument(help: "The record name.")
    var name: String

    func run(on connection: Connection) async throws {
        let versions = try await EarlierVersions(place: place, name: name).all(on: connection)
        try show(
            .members(["versions": .array(versions)]),
            versions.isEmpty ? "no earlier versions" : EarlierVersions.table(versions))
    }
}

struct RecordRestoreCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore", abstract: "Save an earlier version of a record again.",
        discussion: """
            This is a save like any other: it fails if the record changes meanwhile, and what it replaces becomes a \
            version in its turn. A deleted record is created again.
            """)

    @OptionGroup var options: ClientOptions
    @OptionGroup var place: RecordOptions

    @Option(help: ArgumentHelp("The change tag of the version; without one the newest.", valueName: "tag"))
    var version: String?

    @Argument(help: "The record name.")
    var name: String

    func run(on connection: Connection) async throws {
        let earlier = EarlierVersions(place: place, name: name)
        let versions = try await earlier.all(on: connection)
        let wanted = version.map { tag in versions.first { $0["record"]?["recordChangeTag"]?.string == tag } }
        guard let restored = (wanted ?? versions.first)?["record"] else {
            let what = version.map { "no earlier version '\($0)': `zonekeeper record versions` lists them" }
            throw CommandFailure("record '\(name)' has \(what ?? "no earlier version")")
        }
        if let code = restored["serverErrorCode"]?.string {
            throw CommandFailure("\(code): \(restored.text("reason"))")
        }
        let operation = EarlierVersions.operation(saving: restored, over: try await earlier.present(on: connection))
        let response = try await connection.send(try place.modify([operation], on: connection))
        try ItemFailures.report(response, asJSON: options.json, try response.records()) { saved in
            "saved \(saved.text("recordName")) as it was at \(restored.text("recordChangeTag")), tag "
                + saved.text("recordChangeTag")
        }
    }
}

struct EarlierVersions {
    var place: RecordOptions
    var name: String

    func all(on connection: Connection) async throws -> [JSONValue] {
        var versions: [JSONValue] = []
        while true {
            let before = versions.last?["record"]?["recordChangeTag"]
            let answer = try await connection.send(
                try place.request("records/versions", ["recordName": .string(name), "before": before], on: connection)
            ).checked().json()
            guard let page = answer["versions"]?.array else {
                throw CommandFailure("the answer has no versions in it. Is this a Zonekeeper node?")
            }
            versions += page
            if answer["moreComing"] != .bool(true) || page.isEmpty { return versions }
        }
    }

    /// The record as it is now; nil where it is deleted.
    func present(on connection: Connection) async throws -> JSONValue? {
        let wanted = JSONValue.array([.members(["recordName": .string(name)])])
        let request = try place.request("records/lookup", ["records": wanted], on: connection)
        let records = try await connection.send(request).records()
        guard let record = records.first, record["serverErrorCode"]?.string != "NOT_FOUND" else { return nil }
        try ItemFailures.tell(in: [record])
        return record
    }

    /// The operation that makes a record what a version of it was.
    static func operation(saving version: JSONValue, over present: JSONValue?) -> JSONValue {
        let kept = version["fields"]?.members ?? []
        let cleared = (present?["fields"]?.members ?? []).filter { version["fields"]?[$0.key] == nil }
            .map { JSONValue.Member($0.key, .null) }
        let parent = version["parent"] ?? (present?["parent"] == nil ? nil : .null)
        return .members([
            "operationType": .string(present == nil ? "create" : "update"),
            "record": .members([
                "recordName": version["recordName"], "recordType": version["recordType"],
                "recordChangeTag": present?["recordChangeTag"], "parent": parent, "fields": .object(kept + cleared),
            ]),
        ])
    }

    static func table(_ versions: [JSONValue]) -> String {
        let columns: [Table.Column] = [
            .init("TAG", { $0["record"]?.text("recordChangeTag") ?? "" }),
            .init("MODIFIED", { $0["record"]?["modified"]?.time("timestamp") ?? "" }),
            .init("BY", { $0["record"]?["modified"]?.text("userRecordName") ?? "" }),
            .init("ENDED", { $0["replaced"]?.time("timestamp") ?? "" }),
            .init("BY", { $0["replaced"]?.text("userRecordName") ?? "" }),
            .init("HOW", { $0["isDeletion"] == .bool(true) ? "deleted" : "changed" }),
            .init("FIELDS", { ($0["record"].map(ChangesTable.fields) ?? "").shortened(to: 60) }),
        ]
        return Table(versions, columns).text
    }
}
