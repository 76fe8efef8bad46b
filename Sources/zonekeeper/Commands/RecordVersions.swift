import ArgumentParser
import RecordModel
import ServiceClient

struct RecordVersionsCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "versions",
        abstract: "List what a record was before it was changed or deleted, the newest first.",
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
        commandName: "restore",
        abstract: "Save an earlier version of a record again.",
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
