import Admission
import Cluster
import Directory
import RaftCore
import RecordModel
import RecordStore
import Service

extension AdminRequest {
    /// One rule that a request is held to, and how far it is from it now.
    fileprivate struct Rule {
        var name: String
        var limit: Int64
        var used: Int64?
        /// Where it is known; else what `used` leaves.
        var remaining: Int64?
        var resetSeconds: Double?
        var fires = false
        var reason: String
    }

    /// `GET limits/explain`: what a request would be held to, which rule would fire, and when that passes. Rates are as
    /// this node sees them.
    func explainLimits() async throws(RequestFailure) -> Reply {
        let key = try schemaKey()
        let directory = try await directory()
        try Self.requireContainer(key.container, in: directory)
        let action = try explainedAction()
        let isKeyValue = action.hasPrefix("kv/")
        var rules = [rate(RateKey(container: key.container, kind: isKeyValue ? .keyValues : .requests), directory)]
        let limits = directory.limits(of: key.container)
        rules.append(
            Rule(
                name: ContainerLimit.concurrentRequests.rawValue, limit: limits[.concurrentRequests],
                reason: "requests of the container that one node works on at once; more wait their turn"))
        if isKeyValue {
            rules.append(
                Rule(
                    name: "storeBytes", limit: Int64(Limits.storeBytesMax),
                    reason: "bytes of one user's preferences; `zonekeeper kv list` shows them"))
        } else {
            let user = try await explainedUser(key)
            rules += try await quotas(of: try explainedDatabase(key, user), action: action, directory)
            rules += Self.sizes(of: action, limits)
            if action == DatabaseAction.uploadAssets.rawValue {
                rules += context.service.unsavedUploads.rules(
                    of: user, in: key.container, limit: limits[.unsavedAssetBytes], now: context.service.now)
            }
        }
        return Reply { writer in
            writer.key("rules")
            writer.array { writer in for rule in rules { writer.object { Self.write(rule, to: &$0) } } }
            let firing = rules.first(where: \.fires)
            writer.member(
                "verdict", firing.map { "refused by \($0.name): \($0.reason)" } ?? "allowed")
        }
    }

    private static let keyValueActions = ["kv/get", "kv/list", "kv/set", "kv/changes"]

    /// What the request does: one of the database's actions, or of the preferences'.
    private func explainedAction() throws(RequestFailure) -> String {
        guard let action = url["action"] else { return DatabaseAction.modifyRecords.rawValue }
        guard DatabaseAction(rawValue: action) != nil || Self.keyValueActions.contains(action) else {
            let known = DatabaseAction.allCases.map(\.rawValue) + Self.keyValueActions
            throw RequestFailure(
                .badRequest, "action: one of \(known.joined(separator: ", ")) is expected, not '\(action)'")
        }
        return action
    }

    private func rate(_ key: RateKey, _ directory: DirectorySnapshot) -> Rule {
        let now = context.service.uptime
        let state = context.service.peerExchange.rates.limiters.limiter(key, now: now).state(now: now)
        let limit = Int64(RateExchange.limit(of: key, in: directory))
        var rule = Rule(
            name: key.kind.rawValue, limit: limit,
            reason: "requests a second of the container, over all nodes")
        guard state.validUntil > now else {
            rule.reason += "; this node has no share of them at the moment, and gets one with the next request"
            return rule
        }
        rule.reason += "; this node's share is \(Self.text(Double(state.microRate) / 1_000_000)) now"
        rule.remaining = Int64(state.remaining)
        rule.fires = state.remaining == 0
        rule.resetSeconds = state.nextMilliseconds.map { Double($0) / 1_000 }
        return rule
    }

    private static func text(_ number: Double) -> String { String((number * 10).rounded() / 10) }

    /// The record name of the user who asks; nil where none is named.
    private func explainedUser(_ key: SchemaKey) async throws(RequestFailure) -> String? {
        guard let name = url["user"], !name.isEmpty else { return nil }
        return Account.userRecordName(accountID: try await account(named: name).id, container: key.container)
    }

    /// The database that the parameters name.
    private func explainedDatabase(_ key: SchemaKey, _ user: String?) throws(RequestFailure) -> DatabaseKey {
        let text = url["database"] ?? "public"
        guard let scope = Scope(rawValue: text) else {
            throw RequestFailure(.badRequest, "database: 'public' or 'private' is expected, not '\(text)'")
        }
        if scope == .shared { throw .notBuilt("the shared database") }
        guard let owner = scope == .public ? DatabaseKey.publicOwner : user else {
            throw RequestFailure(.badRequest, "user: the name of the user whose private data it is is missing")
        }
        return DatabaseKey(container: key.container, environment: key.environment, scope: scope, owner: owner)
    }

    private func quotas(
        of database: DatabaseKey, action: String, _ directory: DirectorySnapshot
    ) async throws(RequestFailure) -> [Rule] {
        let isGrowing = action == DatabaseAction.modifyRecords.rawValue
        let cap = context.service.quota(of: database, in: directory).cap
        let used = try await ContainerUsage.used(database, in: context.service, by: deadline)
        let isPublic = database.scope == .public
        var rules = [
            Rule(
                name: (isPublic ? ContainerLimit.databaseBytes : .userBytes).rawValue, limit: cap.bytes,
                used: used.bytes, fires: isGrowing && used.bytes >= cap.bytes,
                reason:
                    "bytes of \(isPublic ? "the public database" : "the user's private records"); only what grows is refused"
            ),
            Rule(
                name: (isPublic ? ContainerLimit.databaseRecords : .userRecords).rawValue, limit: cap.records,
                used: used.records, fires: isGrowing && used.records >= cap.records,
                reason: "records of \(isPublic ? "the public database" : "the user"); only new ones are refused"),
            Rule(
                name: (isPublic ? ContainerLimit.assetBytes : .userAssetBytes).rawValue, limit: cap.assets,
                used: used.assets, fires: isGrowing && context.service.node.hasAssets && used.assets >= cap.assets,
                reason:
                    "bytes of assets of \(isPublic ? "the public database" : "the user"); only new references are refused"
            ),
        ]
        if isPublic {
            let (carried, limit) = try await ContainerUsage.transfer(
                of: database, in: context.service, directory, by: deadline)
            rules.append(
                Rule(
                    name: ContainerLimit.transferBytesPerMonth.rawValue, limit: limit, used: carried,
                    fires: (isGrowing || action == DatabaseAction.uploadAssets.rawValue) && carried >= limit,
                    reason: "bytes that this month's requests for public data carried, as far as this node knows"))
        }
        return rules
    }

    private static func sizes(of action: String, _ limits: ContainerLimits) -> [Rule] {
        var rules = [
            Rule(
                name: "requestBodyBytes", limit: Int64(Limits.requestBodyBytesMax),
                reason: "bytes of one request's body")
        ]
        switch action {
        case "records/modify", "zones/modify":
            rules.append(
                Rule(name: "operations", limit: Int64(Limits.operationsMax), reason: "operations of one request"))
            rules.append(
                Rule(
                    name: "recordBytes", limit: Int64(Limits.recordSizeBytesMax), reason: "bytes of one record's fields"
                ))
        case "records/query", "changes/zone", "records/lookup":
            rules.append(
                Rule(name: "recordsPerPage", limit: Int64(Limits.recordsPerPageMax), reason: "records of one answer"))
        case "assets/upload":
            for (limit, reason) in [
                (ContainerLimit.assetUploadBytes, "bytes of one uploaded file"),
                (.assetUploadBytesMax, "bytes of one uploaded file whose size was announced"),
            ] { rules.append(Rule(name: limit.rawValue, limit: limits[limit], reason: reason)) }
        default: break
        }
        return rules
    }

    private static func write(_ rule: Rule, to writer: inout JSONWriter) {
        writer.member("name", rule.name)
        writer.member("limit", integer: rule.limit)
        if let used = rule.used { writer.member("used", integer: used) }
        if rule.limit != ContainerLimit.unlimited,
            let remaining = rule.remaining ?? rule.used.map({ max(rule.limit - $0, 0) })
        {
            writer.member("remaining", integer: remaining)
        }
        if let reset = rule.resetSeconds { writer.member("resetSeconds", number: reset) }
        writer.member("fires", rule.fires)
        writer.member("reason", rule.reason)
    }
}

extension UnsavedUploads {
    /// What a user uploads and saves in no record, and the uploads that are under way; those of a user are not known
    /// where none is named.
    fileprivate func rules(
        of user: String?, in container: String, limit: Int64, now: Int64
    ) -> [AdminRequest.Rule] {
        let use = user.map { self.use(of: $0, in: container, now: now) }
        func places(of whom: String, _ limit: Int, _ used: Int?) -> AdminRequest.Rule {
            AdminRequest.Rule(
                name: "\(whom)Uploads", limit: Int64(limit), used: used.map { Int64($0) },
                fires: used.map { $0 >= limit } ?? false,
                reason: "uploads of the \(whom) that one node takes at once; further ones are to be tried again")
        }
        return [
            AdminRequest.Rule(
                name: ContainerLimit.unsavedAssetBytes.rawValue, limit: limit, used: use?.bytes,
                fires: use.map { $0.bytes + Self.bytesMin > limit } ?? false,
                reason: "bytes that a user uploads in a day and saves in no record, as far as this node knows"),
            places(of: "user", userOpenMax, use?.open),
            places(of: "container", containerOpenMax, open(in: container)),
        ]
    }
}
