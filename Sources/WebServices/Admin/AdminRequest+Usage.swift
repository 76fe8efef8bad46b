import Cluster
import Directory
import RecordModel
import RecordStore
import Service

extension AdminRequest {
    /// A page of a recount reads many records.
    private static let recountDeadlineMilliseconds: UInt64 = 60_000

    /// `GET usage`: a page of what a container's databases hold, by environment, user and zone.
    func usage() async throws(RequestFailure) -> Reply {
        let container = try parameter("container")
        let directory = try await directory()
        try Self.requireContainer(container, in: directory)
        let key = try schemaKey()
        let request = try await usageRequest(key)
        let isRecounted = request.detail == .recount
        let deadline = isRecounted ? Deadline(milliseconds: Self.recountDeadlineMilliseconds) : deadline
        let usage = try await ContainerUsage.page(request, in: context.service, by: deadline)
        let transfer = try await self.transfer(of: key, by: deadline)
        let names = try await context.service.accounts.names(ofOwners: usage.databases.map(\.key))
        return Reply { writer in
            writer.member("container", container)
            writer.member("environment", key.environment.rawValue)
            writer.key("databases")
            writer.array { writer in
                for database in usage.databases {
                    writer.object { write(database, isRecounted: isRecounted, names, to: &$0) }
                }
            }
            if let next = usage.next { writer.member("next", Self.text(of: next)) }
            writer.key("transfer")
            writer.object { writer in
                writer.member("month", integer: Int64(transfer.month))
                writer.member("bytes", integer: transfer.bytes)
                writer.member("limitBytes", integer: transfer.limit)
                if let warning = Self.warning(of: transfer.bytes, limit: transfer.limit, "bytes") {
                    writer.member("warning", warning)
                }
            }
        }
    }

    private func usageRequest(_ key: SchemaKey) async throws(RequestFailure) -> UsageRequest {
        let after = try position(in: key)
        let detail: UsageRequest.Detail =
            if try flag("verify") { .recount } else if try flag("zones") { .zones } else { .totals }
        guard let name = url["user"], !name.isEmpty else {
            return UsageRequest(
                container: key.container, environment: key.environment, after: after, detail: detail)
        }
        let account = try await account(named: name)
        let database = DatabaseKey(
            container: key.container, environment: key.environment, scope: .private,
            owner: Account.userRecordName(accountID: account.id, container: key.container))
        return UsageRequest(of: database, after: after, detail: detail)
    }

    /// As the parameter `after` of the next page has it: scope and owner, and the zone where the database goes on.
    private static func text(of position: UsagePosition) -> String {
        let database = position.database
        return ([database.scope.rawValue, database.owner] + (position.zone.map { [$0] } ?? [])).joined(separator: "/")
    }

    /// Where the page goes on, as `next` of the last one said. Names of owners have no slash; those of zones may.
    private func position(in key: SchemaKey) throws(RequestFailure) -> UsagePosition? {
        guard let text = url["after"], !text.isEmpty else { return nil }
        let parts = text.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: false).map(String.init)
        guard parts.count >= 2, let scope = Scope(rawValue: parts[0]) else {
            throw RequestFailure(.badRequest, "after: what 'next' of the last answer said is expected, not '\(text)'")
        }
        let database = DatabaseKey(
            container: key.container, environment: key.environment, scope: scope, owner: parts[1])
        return UsagePosition(database: database, zone: parts.count > 2 ? parts[2] : nil)
    }

    private func transfer(
        of key: SchemaKey, by deadline: Deadline
    ) async throws(RequestFailure) -> (month: UInt64, bytes: Int64, limit: Int64) {
        let database = DatabaseKey(
            container: key.container, environment: key.environment, scope: .public, owner: DatabaseKey.publicOwner)
        let ledger = try await context.service.ledger(of: database, by: deadline)
        let month = QuotaTransfer.month(of: context.service.now)
        let directory = context.service.node.directory.snapshot
        let limit = directory.limits(of: key.container).transferBytesPerMonth(
            users: directory.userCount(of: key.container))
        return (month, ledger.transferMonth == month ? Int64(clamping: ledger.transferBytes) : 0, limit)
    }

    private func write(
        _ database: ContainerUsage.Database, isRecounted: Bool, _ names: [String: String],
        to writer: inout JSONWriter
    ) {
        let key = database.key
        let cap = context.service.quota(of: key, in: context.service.node.directory.snapshot).cap
        writer.member("environment", key.environment.rawValue)
        writer.member("scope", key.scope.rawValue)
        if key.scope == .private {
            if let name = names[key.owner] { writer.member("user", name) }
            writer.member("userRecordName", key.owner)
        }
        writer.member("bytes", integer: database.used.bytes)
        writer.member("records", integer: database.used.records)
        writer.member("assetBytes", integer: database.used.assets)
        writer.member("allottedBytes", integer: database.allotted.bytes)
        writer.member("limitBytes", integer: cap.bytes)
        writer.member("limitRecords", integer: cap.records)
        writer.member("limitAssetBytes", integer: cap.assets)
        let warnings = [
            Self.warning(of: database.used.bytes, limit: cap.bytes, "bytes"),
            Self.warning(of: database.used.records, limit: cap.records, "records"),
            Self.warning(of: database.used.assets, limit: cap.assets, "bytes of assets"),
        ].compactMap { $0 }
        if !warnings.isEmpty { writer.member("warning", warnings.joined(separator: "; ")) }
        writer.key("zones")
        writer.array { writer in
            for zone in database.zones {
                writer.object { writer in
                    writer.member("name", zone.name)
                    writer.member("bytes", integer: zone.used.bytes)
                    writer.member("records", integer: zone.used.records)
                    writer.member("assetBytes", integer: zone.used.assets)
                    if let recount = zone.recount {
                        Self.write(recount, isEqual: recount == zone.used, to: &writer)
                    }
                }
            }
        }
        if isRecounted { Self.write(database.recount, isEqual: database.isEqual, to: &writer) }
    }

    /// What comes near its limit, in words.
    private static func warning(of used: Int64, limit: Int64, _ things: String) -> String? {
        switch QuotaWarning(cap: limit, free: limit - used) {
        case .full?: "all \(things) that are allowed are used"
        case let level?: "\(level.rawValue) % or more of the \(things) that are allowed are used"
        case nil: nil
        }
    }

    private static func write(_ recount: QuotaAmounts, isEqual: Bool, to writer: inout JSONWriter) {
        writer.key("recount")
        writer.object { writer in
            writer.member("bytes", integer: recount.bytes)
            writer.member("records", integer: recount.records)
            writer.member("assetBytes", integer: recount.assets)
            writer.member("isEqual", isEqual)
        }
    }
}
