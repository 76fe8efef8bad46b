import ArgumentParser
import Foundation
import RecordModel
import ServiceClient
import WebServices

struct UsageCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "usage",
        abstract:
            "Show how much of its quotas a container uses, by database and user; by zone, record type or day if asked.",
        discussion: """
            Bytes are those of the records as they are stored, their names included. --verify counts every record \
            anew, zone by zone, and compares each counter; where one differs, the exit code is 1. Without \
            --environment, both environments are shown.
            """)

    @OptionGroup var options: ClientOptions

    @Option(help: "Only this user's private database.")
    var user: String?

    @Flag(help: "Show each zone as well.")
    var zones = false

    @Flag(help: "Count again, and compare.")
    var verify = false

    @Flag(help: "Count the records of each type, which reads all of them.")
    var types = false

    @Flag(help: "Show what was used on each of the last 90 days, and when the public data are full at that rate.")
    var days = false

    @Option(help: "Write all of it, as csv or as lines of JSON: databases, or what --zones, --types or --days says.")
    var export: ListExport.Format?

    @Option(
        name: [.short, .long],
        help: ArgumentHelp("The file for --export; `-`, which is usual, is standard output.", valueName: "file"))
    var output = "-"

    func validate() throws {
        if export != nil ? verify : output != "-" {
            throw ValidationError("--export: --output goes with it, and --verify does not")
        }
        guard types || days, [zones || verify, types, days].count(where: \.self) > 1 else { return }
        throw ValidationError("--types and --days go with none of --zones, --verify and each other")
    }

    func run(on connection: Connection) async throws {
        if let export { return try await write(as: export, on: connection) }
        if types { return try await showTypes(on: connection) }
        if days { return try await showDays(on: connection) }
        let answers = try await answers(on: connection)
        let report = UsageReport(answers, isVerified: verify, showsZones: zones)
        try show(.members(["environments": .array(answers)]), report.text)
        for warning in report.warnings { Console.note("warning: \(warning)") }
        for difference in report.differences { Console.error(difference) }
        if !report.differences.isEmpty { throw ExitCode.failure }
    }

    private func write(as format: ListExport.Format, on connection: Connection) async throws {
        let kind: ListExport.Kind = types ? .types : days ? .days : zones ? .zones : .databases
        try await OutputFile(path: output).write { file in
            try file.write(contentsOf: ListExport(kind, as: format).head)
            _ = try await environments(on: connection) { container, environment in
                var export = ListExport(kind, as: format)
                try await connection.administerPages(
                    days ? "usage/days" : "usage",
                    parameters: [
                        "container": container, "environment": environment, "user": user, "zones": zones.parameter,
                        "types": types.parameter,
                    ], isSlow: types
                ) { try file.write(contentsOf: export.page($0)) }
                try file.write(contentsOf: export.end())
            }
        }
        if output != "-" { try show(.members(["file": .string(output)]), "wrote \(output)") }
    }

    private func environments<Answer>(
        on connection: Connection, _ ask: (_ container: String, _ environment: String) async throws -> Answer
    ) async throws -> [(title: String, environment: String, answer: Answer)] {
        let container = try connection.container()
        let names = connection.settings.environmentNamed.map { [$0] } ?? ["development", "production"]
        var answers: [(title: String, environment: String, answer: Answer)] = []
        for name in names { answers.append(("\(container), \(name)", name, try await ask(container, name))) }
        return answers
    }

    private func showTypes(on connection: Connection) async throws {
        let answers = try await environments(on: connection) { container, environment in
            var types = UsageByType()
            try await connection.administerPages(
                "usage",
                parameters: ["container": container, "environment": environment, "user": user, "types": "true"],
                isSlow: true
            ) { types.add($0) }
            return types
        }
        try show(
            .members(["environments": .object(answers.map { JSONValue.Member($0.environment, $0.answer.json) })]),
            answers.map { "\($0.title)\n\n\($0.answer.text)" }.joined(separator: "\n\n"))
    }

    private func showDays(on connection: Connection) async throws {
        let answers = try await environments(on: connection) { container, environment in
            try await connection.administer(
                "GET", "usage/days", parameters: ["container": container, "environment": environment]
            ).json()
        }
        try show(
            .members(["environments": .array(answers.map(\.answer))]),
            answers.map { "\($0.title)\n\n\(UsageByDay.text($0.answer))" }.joined(separator: "\n\n"))
    }

    private func answers(on connection: Connection) async throws -> [JSONValue] {
        try await environments(on: connection) { container, environment in
            var pages = UsagePages()
            try await connection.administerPages(
                "usage",
                parameters: [
                    "container": container, "environment": environment, "user": user, "zones": zones.parameter,
                    "verify": verify.parameter,
                ], isSlow: verify
            ) { pages.add($0) }
            return pages.whole
        }.map(\.answer)
    }
}

/// Pages of a container's usage, put together to what one page would be that has room for all.
///
/// A database with many zones comes in several parts, each with the whole database's counters as they were then, some
/// of the zones, and the recount of those.
struct UsagePages {
    private var first: JSONValue?
    private var databases: [JSONValue] = []

    mutating func add(_ page: JSONValue) {
        first = first ?? page
        for part in page["databases"]?.array ?? [] {
            if let last = databases.last, Self.isSame(last, part) {
                databases[databases.count - 1] = Self.joined(last, part)
            } else {
                databases.append(part)
            }
        }
    }

    /// As the server answers, without `next`.
    var whole: JSONValue {
        (first ?? .object([])).without("next").replacing("databases", with: .array(databases))
    }

    private static func isSame(_ left: JSONValue, _ right: JSONValue) -> Bool {
        left["scope"] == right["scope"] && left["userRecordName"] == right["userRecordName"]
    }

    /// The counters stay those of the first part; a recount of later zones differs from them by what it differs from
    /// the counters that came with it.
    private static func joined(_ whole: JSONValue, _ part: JSONValue) -> JSONValue {
        let zones = (whole["zones"]?.array ?? []) + (part["zones"]?.array ?? [])
        let joined = whole.replacing("zones", with: .array(zones))
        guard let recount = whole["recount"], let more = part["recount"] else { return joined.without("recount") }
        func sum(_ key: String) -> JSONValue {
            let difference = (more.amount(key) ?? 0) &- (part.amount(key) ?? 0)
            return .integer((recount.amount(key) ?? 0) &+ difference)
        }
        let isEqual = recount["isEqual"] == .bool(true) && more["isEqual"] == .bool(true)
        return joined.replacing(
            "recount",
            with: .members([
                "bytes": sum("bytes"), "records": sum("records"), "assetBytes": sum("assetBytes"),
                "isEqual": .bool(isEqual),
            ]))
    }
}

extension JSONValue {
    /// An object with another value for a member, which is added where it is missing.
    fileprivate func replacing(_ key: String, with value: JSONValue) -> JSONValue {
        var members = members
        if let position = members.firstIndex(where: { $0.key == key }) {
            members[position].value = value
        } else {
            members.append(Member(key, value))
        }
        return .object(members)
    }

    fileprivate func without(_ key: String) -> JSONValue {
        .object(members.filter { $0.key != key })
    }
}

struct UsageReport {
    private let container: String
    private let databases: [JSONValue]
    /// By environment.
    private let transfers: [(environment: String, transfer: JSONValue)]
    private let isVerified: Bool
    private let showsZones: Bool

    /// - Parameter answers: the server's, one for each environment, with all pages in it.
    init(_ answers: [JSONValue], isVerified: Bool, showsZones: Bool) {
        container = answers.first?.text("container") ?? ""
        databases = answers.flatMap { $0["databases"]?.array ?? [] }
        transfers = answers.compactMap { answer in
            answer["transfer"].map { (answer.text("environment"), $0) }
        }
        self.isVerified = isVerified
        self.showsZones = showsZones
    }

    var text: String {
        var parts = ["container \(container)"]
        parts.append(databases.isEmpty ? "no records yet" : databaseTable)
        let zones = showsZones ? zoneTable : nil
        if let zones { parts.append(zones) }
        let carried = transfers.compactMap { environment, transfer in
            transfer.amount("bytes").map { bytes in
                "transfer in \(environment), \(Self.month(of: transfer)): \(Units.bytes(bytes))"
                    + share(of: bytes, transfer.amount("limitBytes"))
            }
        }
        if !carried.isEmpty { parts.append(carried.joined(separator: "\n")) }
        if isVerified, differences.isEmpty {
            let count = databases.count
            parts.append("counted again: \(count) \(count == 1 ? "database is" : "databases are") right to the byte")
        }
        return parts.joined(separator: "\n\n")
    }

    /// What comes near its limit, a line each.
    var warnings: [String] {
        databases.compactMap { database in
            database["warning"]?.string.map { "\(Self.name(of: database)): \($0)" }
        }
            + transfers.compactMap { environment, transfer in
                transfer["warning"]?.string.map { "\(environment) transfer in \(Self.month(of: transfer)): \($0)" }
            }
    }

    /// Where a recount came to something else, a line each: of databases, and of zones, which may make up for each
    /// other. A database without a recount is one too.
    var differences: [String] {
        guard isVerified else { return [] }
        return databases.flatMap { database -> [String] in
            let name = Self.name(of: database)
            let zones = (database["zones"]?.array ?? []).compactMap { zone in
                Self.difference(in: zone, name: "\(name), zone \(zone.text("name"))")
            }
            if let whole = Self.difference(in: database, name: name) { return [whole] + zones }
            return zones
        }
    }

    private static func difference(in json: JSONValue, name: String) -> String? {
        guard let recount = json["recount"], !recount.isNull else {
            return "\(name): was not counted again"
        }
        let isSame =
            recount.amount("bytes") == json.amount("bytes") && recount.amount("records") == json.amount("records")
            && recount.amount("assetBytes") == json.amount("assetBytes")
        if isSame, recount["isEqual"] == .bool(true) { return nil }
        guard isSame else { return "\(name): the counters say \(counts(json)), the records \(counts(recount))" }
        return "\(name): the sum is right, but not each counter in it"
    }

    private static func month(of transfer: JSONValue) -> String {
        let month = transfer.text("month")
        return month.count == 6 ? "\(month.prefix(4))-\(month.suffix(2))" : month
    }

    private var databaseTable: String {
        var table = Table(
            headings: [
                "ENVIRONMENT", "DATABASE", "USER", "RECORDS", "BYTES", "LIMIT", "USED", "ASSETS", "LIMIT", "USED",
            ])
        for database in databases {
            let amounts = [("bytes", "limitBytes"), ("assetBytes", "limitAssetBytes")].flatMap { used, limit in
                let (used, limit) = (database.amount(used) ?? 0, database.amount(limit))
                return [
                    Units.bytes(used), limit.map { LimitValue.text($0, .bytes) } ?? "",
                    Self.percent(used, of: limit) ?? "",
                ]
            }
            table.add(
                [
                    database.text("environment"), database.text("scope"), Self.user(of: database),
                    Units.count(database.amount("records") ?? 0),
                ] + amounts)
        }
        return table.text
    }

    private var zoneTable: String? {
        var table = Table("ENVIRONMENT", "DATABASE", "USER", "ZONE", "RECORDS", "BYTES")
        for database in databases {
            for zone in database["zones"]?.array ?? [] {
                table.add([
                    database.text("environment"), database.text("scope"), Self.user(of: database), zone.text("name"),
                    Units.count(zone.amount("records") ?? 0), Units.bytes(zone.amount("bytes") ?? 0),
                ])
            }
        }
        return table.rows.isEmpty ? nil : table.text
    }

    private func share(of used: Int64, _ limit: Int64?) -> String {
        guard let limit, limit != ContainerLimit.unlimited else { return "" }
        return " of \(Units.bytes(limit))" + (Self.percent(used, of: limit).map { " (\($0))" } ?? "")
    }

    /// Cut, not rounded up: what is shown as 100 % is full.
    private static func percent(_ used: Int64, of limit: Int64?) -> String? {
        guard let limit, limit > 0, limit != ContainerLimit.unlimited else { return nil }
        return "\(Int128(used) * 100 / Int128(limit)) %"
    }

    /// The account's name; the record name where the account is gone.
    private static func user(of database: JSONValue) -> String {
        let name = database.text("user")
        return name.isEmpty ? database.text("userRecordName") : name
    }

    private static func name(of database: JSONValue) -> String {
        [database.text("environment"), database.text("scope"), user(of: database)].filter { !$0.isEmpty }
            .joined(separator: " ")
    }

    private static func counts(_ json: JSONValue) -> String {
        let assets = json.amount("assetBytes") ?? 0
        return "\(json.amount("records").map(String.init) ?? "?") records with "
            + "\(json.amount("bytes").map(String.init) ?? "?") bytes" + (assets == 0 ? "" : " and \(assets) of assets")
    }
}

extension JSONValue {
    /// A member that is a whole number.
    func amount(_ key: String) -> Int64? { self[key]?.amount }

    /// A whole number; nil for anything else.
    var amount: Int64? { if case .integer(let number) = self { number } else { nil } }
}

/// A container's records by type, as people read them: pages of the answer added up.
struct UsageByType {
    private var types: [(name: String, records: Int64, bytes: Int64)] = []
    /// Of all databases, index rows and deleted records included.
    private var allBytes: Int64 = 0
    private var databases: Set<String> = []

    mutating func add(_ page: JSONValue) {
        for database in page["databases"]?.array ?? [] {
            // One with many zones comes in several parts, each with all of its bytes.
            if databases.insert("\(database.text("scope")) \(database.text("userRecordName"))").inserted {
                allBytes += database.amount("bytes") ?? 0
            }
            for type in database["types"]?.array ?? [] { add(type: type) }
        }
    }

    private mutating func add(type: JSONValue) {
        let (name, records, bytes) = (type.text("name"), type.amount("records") ?? 0, type.amount("bytes") ?? 0)
        if let place = types.firstIndex(where: { $0.name == name }) {
            types[place].records += records
            types[place].bytes += bytes
        } else {
            types.append((name, records, bytes))
        }
    }

    var json: JSONValue {
        .members([
            "bytes": .integer(allBytes),
            "types": .array(
                sorted.map {
                    .members(["name": .string($0.name), "records": .integer($0.records), "bytes": .integer($0.bytes)])
                }),
        ])
    }

    private var sorted: [(name: String, records: Int64, bytes: Int64)] {
        types.sorted { ($1.bytes, $0.name) < ($0.bytes, $1.name) }
    }

    /// A table, and what is no record's.
    var text: String {
        guard !types.isEmpty else { return "no records yet" }
        var table = Table("TYPE", "RECORDS", "BYTES")
        for type in sorted { table.add([type.name, Units.count(type.records), Units.bytes(type.bytes)]) }
        let others = allBytes - types.reduce(0) { $0 + $1.bytes }
        return table.text + (others > 0 ? "\nindexes, deletions and remembered requests: \(Units.bytes(others))" : "")
    }
}

enum UsageByDay {
    static func text(_ json: JSONValue) -> String {
        let days = json["days"]?.array ?? []
        guard !days.isEmpty else {
            return "nothing was counted yet: days appear some minutes after their first request"
        }
        let table = Table(
            days,
            [
                .init("DAY", { String($0.time("time").prefix(10)) }), .text("REQUESTS", "requests"),
                .text("ERRORS", "errors"), .bytes("IN", "bytesIn"), .bytes("OUT", "bytesOut"),
                .text("USERS", "activeUsers"), .bytes("PUBLIC", "publicBytes"),
                .bytes("PRIVATE", "privateBytes"), .bytes("ASSETS", "assetBytes"),
            ])
        guard let growth = json.amount("bytesPerDay") else { return table.text }
        let full = json.amount("daysUntilFull").map { "; full in \($0) days at this rate" } ?? ""
        let sign = growth < 0 ? "-" : "+"
        return table.text + "\n\npublic data: \(sign)\(Units.bytes(abs(growth))) a day\(full)"
    }
}
