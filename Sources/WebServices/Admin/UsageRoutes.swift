import Directory
import RecordModel
import RecordStore
import Service

/// `GET usage`: a page of what a container's databases hold, by environment, user and zone; `GET usage/export`: all of
/// it as a file.
struct UsageRoutes {
    let request: AdminRequest

    func show() async throws(RequestFailure) -> Reply {
        let url = request.url
        let detail: UsageRequest.Detail =
            if try url.flag("verify") {
                .recount
            } else if try url.flag("types") {
                .types
            } else {
                try url.flag("zones") ? .zones : .totals
            }
        return try await page(after: url.text("after"), detail)
    }

    func export() async throws(RequestFailure) -> Reply {
        let kind = try kind()
        let name = "usage-\(try request.url.need("container"))-\(kind.rawValue)"
        return try await ListExportReply(request: request, name: name) { [self] place throws(RequestFailure) in
            switch kind {
            case .days: try await UsageDayRoutes(request: request).show()
            case .types: try await page(after: place, .types)
            case .zones: try await page(after: place, .zones)
            case .databases, .audit: try await page(after: place, .totals)
            }
        }.reply(kind)
    }

    /// What the parameter `of` asks for.
    private func kind() throws(RequestFailure) -> ListExport.Kind {
        guard let name = request.url.text("of") else { return .databases }
        if let kind = ListExport.Kind(rawValue: name), kind != .audit { return kind }
        throw .badRequest("of: 'databases', 'zones', 'types' or 'days' is expected, not '\(name)'")
    }

    private func page(after text: String?, _ detail: UsageRequest.Detail) async throws(RequestFailure) -> Reply {
        let key = try request.url.schemaKey()
        let page = try await request.administration.usage.page(
            of: key, user: request.url.text("user"), after: try position(text, in: key), detail)
        return Reply { writer in
            writer.members(of: key)
            writer.list("databases", page.databases) { Self.write($0, detail, to: &$1) }
            writer.optional("next", page.next.map(Self.text))
            writer.object("transfer") { writer in
                writer.member("month", count: page.transfer.month)
                writer.member("bytes", integer: page.transfer.bytes)
                writer.member("limitBytes", integer: page.transfer.limit)
                writer.optional(
                    "warning", Self.warning(of: page.transfer.bytes, limit: page.transfer.limit, "bytes"))
            }
        }
    }

    /// As the parameter `after` of the next page has it: scope and owner, and the zone where the database goes on.
    private static func text(of position: UsagePosition) -> String {
        let database = position.database
        return ([database.scope.rawValue, database.owner] + (position.zone.map { [$0] } ?? [])).joined(separator: "/")
    }

    /// Where the page goes on, as `next` of the last one said. Names of owners have no slash; those of zones may.
    private func position(_ text: String?, in key: SchemaKey) throws(RequestFailure) -> UsagePosition? {
        guard let text else { return nil }
        let parts = text.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: false).map(String.init)
        guard parts.count >= 2, let scope = Scope(rawValue: parts[0]) else { throw RequestURL.wrongCursor(text) }
        let database = DatabaseKey(
            container: key.container, environment: key.environment, scope: scope, owner: parts[1])
        return UsagePosition(database: database, zone: parts.count > 2 ? parts[2] : nil)
    }

    private static func write(
        _ database: UsageAdministration.Page.Database, _ detail: UsageRequest.Detail, to writer: inout JSONWriter
    ) {
        let (key, usage, cap) = (database.usage.key, database.usage, database.cap)
        writer.member("environment", key.environment.rawValue)
        writer.member("scope", key.scope.rawValue)
        if key.scope == .private {
            writer.optional("user", database.user)
            writer.member("userRecordName", key.owner)
        }
        write(usage.used, to: &writer)
        writer.member("allottedBytes", integer: usage.allotted.bytes)
        writer.member("limitBytes", integer: cap.bytes)
        writer.member("limitRecords", integer: cap.records)
        writer.member("limitAssetBytes", integer: cap.assets)
        let warnings = [
            warning(of: usage.used.bytes, limit: cap.bytes, "bytes"),
            warning(of: usage.used.records, limit: cap.records, "records"),
            warning(of: usage.used.assets, limit: cap.assets, "bytes of assets"),
        ].compactMap { $0 }
        if !warnings.isEmpty { writer.member("warning", warnings.joined(separator: "; ")) }
        if detail == .types { write(usage.zones.flatMap(\.types), to: &writer) }
        writer.list("zones", detail == .types ? [] : usage.zones) { zone, writer in
            writer.member("name", zone.name)
            write(zone.used, to: &writer)
            if let recount = zone.recount { write(recount, isEqual: recount == zone.used, to: &writer) }
        }
        if detail == .recount { write(usage.recount, isEqual: usage.isEqual, to: &writer) }
    }

    /// What zones have of each type, the types by name.
    private static func write(_ types: [TypeUsage], to writer: inout JSONWriter) {
        let sums = types.reduce(into: [String: TypeUsage]()) { sums, type in
            sums[type.name, default: TypeUsage(name: type.name, records: 0, bytes: 0)].records += type.records
            sums[type.name]?.bytes += type.bytes
        }
        writer.list("types", sums.values.sorted { $0.name < $1.name }) { type, writer in
            writer.member("name", type.name)
            writer.member("records", integer: type.records)
            writer.member("bytes", integer: type.bytes)
        }
    }

    /// What comes near its limit, in words.
    private static func warning(of used: Int64, limit: Int64, _ things: String) -> String? {
        switch QuotaWarning(cap: limit, free: limit - used) {
        case .full?: "all \(things) that are allowed are used"
        case let level?: "\(level.rawValue) % or more of the \(things) that are allowed are used"
        case nil: nil
        }
    }

    private static func write(_ amounts: QuotaAmounts, to writer: inout JSONWriter) {
        writer.member("bytes", integer: amounts.bytes)
        writer.member("records", integer: amounts.records)
        writer.member("assetBytes", integer: amounts.assets)
    }

    private static func write(_ recount: QuotaAmounts, isEqual: Bool, to writer: inout JSONWriter) {
        writer.object("recount") { writer in
            write(recount, to: &writer)
            writer.member("isEqual", isEqual)
        }
    }
}

/// `GET usage/days`: what a container's environment used, day by day.
struct UsageDayRoutes {
    let request: AdminRequest

    func show() async throws(RequestFailure) -> Reply {
        _ = try request.url.need("container")
        let key = try request.url.schemaKey()
        let usage = request.administration.usage
        let limit = try await usage.publicLimit(of: key)
        let days = try await request.responder.context.history.days(of: key)
        let forecast = StorageForecast(days, limit: limit)
        let today = DayUsage.day(of: request.service.now)
        return Reply { writer in
            writer.members(of: key)
            writer.member("stepSeconds", integer: DayUsage.milliseconds / 1_000)
            writer.member("from", integer: (today - Int64(UsageHistory.daysMax) + 1) * DayUsage.milliseconds)
            writer.member("until", integer: (today + 1) * DayUsage.milliseconds)
            writer.list("days", days) { day, writer in
                writer.member("time", integer: day.day * DayUsage.milliseconds)
                writer.members(of: day.usage)
            }
            writer.member("limitBytes", integer: limit)
            writer.optional("bytesPerDay", integer: forecast?.bytesPerDay)
            writer.optional("daysUntilFull", integer: forecast?.daysUntilFull)
        }
    }
}

extension JSONWriter {
    fileprivate mutating func members(of usage: DayUsage) {
        member("requests", count: usage.requests)
        member("errors", count: usage.errors)
        member("bytesIn", count: usage.bytesIn)
        member("bytesOut", count: usage.bytesOut)
        member("notifications", count: usage.notifications)
        member("activeUsers", count: usage.users.count)
        guard let storage = usage.storage else { return }
        member("publicBytes", integer: storage.publicBytes)
        member("privateBytes", integer: storage.privateBytes)
        member("assetBytes", integer: storage.assetBytes)
        member("records", integer: storage.records)
    }
}
