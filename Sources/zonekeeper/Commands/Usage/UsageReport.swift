import RecordModel

/// What a container uses, as people read it.
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

    /// Where a recount came to something else, a line each: of databases, and of zones, which may make up for each other. A database
    /// without a recount is one too.
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

    /// What is wrong with the counters of a database or a zone.
    private static func difference(in json: JSONValue, name: String) -> String? {
        guard let recount = json["recount"], !recount.isNull else {
            return "\(name): was not counted again"
        }
        let isSame =
            recount.amount("bytes") == json.amount("bytes") && recount.amount("records") == json.amount("records")
        if isSame, recount["isEqual"] == .bool(true) { return nil }
        guard isSame else { return "\(name): the counters say \(counts(json)), the records \(counts(recount))" }
        return "\(name): the sum is right, but not each counter in it"
    }

    private static func month(of transfer: JSONValue) -> String {
        let month = transfer.text("month")
        return month.count == 6 ? "\(month.prefix(4))-\(month.suffix(2))" : month
    }

    private var databaseTable: String {
        var table = Table(headings: ["ENVIRONMENT", "DATABASE", "USER", "RECORDS", "BYTES", "LIMIT", "USED"])
        for database in databases {
            let used = database.amount("bytes") ?? 0
            let limit = database.amount("limitBytes")
            table.add([
                database.text("environment"), database.text("scope"), Self.user(of: database),
                Units.count(database.amount("records") ?? 0), Units.bytes(used),
                limit.map { LimitValue.text($0, .bytes) } ?? "", Self.percent(used, of: limit) ?? "",
            ])
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
        "\(json.amount("records").map(String.init) ?? "?") records with \(json.amount("bytes").map(String.init) ?? "?") bytes"
    }
}

extension JSONValue {
    /// A member that is a whole number.
    func amount(_ key: String) -> Int64? {
        if case .integer(let number)? = self[key] { number } else { nil }
    }
}
