import Admission
import Cluster
package import Directory
package import RecordModel
import RecordStore

/// What a request would be held to, which rule would fire, and when that passes. Rates are as this node sees them.
package struct LimitExplanation: Sendable {
    /// One rule that a request is held to, and how far it is from it now.
    package struct Rule: Sendable {
        /// The limit's, where it is one that can be set.
        package var name: String
        /// How much there may be.
        package var limit: Int64
        /// How much there is; nil where that is not known.
        package var used: Int64?
        /// Where it is known; else what `used` leaves.
        package var remaining: Int64?
        /// When there is more.
        package var resetSeconds: Double?
        /// Whether the request would be refused.
        package var fires = false
        /// What it counts, in words.
        package var reason: String
    }

    /// What a request does, as far as limits tell requests apart.
    package enum Action: Sendable {
        case saveRecords, modifyZones, readRecords, uploadAssets, preferences, other
    }

    let administration: Administration
    private var service: RecordService { administration.service }

    /// - Parameters:
    ///   - scope: of the database that is asked for; preferences are in none.
    ///   - name: the user who asks; nil where none is named.
    package func rules(
        for action: Action, of name: String?, to scope: Scope, in key: SchemaKey
    ) async throws(RequestFailure) -> [Rule] {
        let directory = try await administration.directory(with: key.container)
        let limits = directory.limits(of: key.container)
        let kind: RateKind = action == .preferences ? .keyValues : .requests
        var account: Account?
        if let name { account = try await administration.owner(named: name) }
        var rules = [
            rate(RateKey(container: key.container, kind: kind), of: account, directory),
            Rule(
                name: ContainerLimit.concurrentRequests.rawValue, limit: limits[.concurrentRequests],
                reason: "requests of the container that one node works on at once; more wait their turn"),
        ]
        guard action != .preferences else {
            rules.append(
                Rule(
                    name: "storeBytes", limit: Int64(Limits.storeBytesMax),
                    reason: "bytes of one user's preferences; `zonekeeper kv list` shows them"))
            return rules
        }
        let own = account.map { DatabaseKey(privateDataOf: $0, in: key) }
        guard let database = scope == .public ? DatabaseKey(publicDataIn: key) : own else {
            throw .badRequest("user: the name of the user whose private data it is is missing")
        }
        rules += try await quotas(of: database, action: action, directory)
        rules += Self.sizes(of: action, limits)
        if action == .uploadAssets {
            rules += service.unsavedUploads.rules(
                of: own?.owner, in: key.container, limit: limits[.unsavedAssetBytes], now: service.now)
        }
        return rules
    }

    private func rate(_ key: RateKey, of account: Account?, _ directory: DirectorySnapshot) -> Rule {
        let now = service.uptime
        let limiter = service.peerExchange.rates.limiters.limiter(key, now: now)
        let state = limiter.state(now: now)
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
        if let wait = account.flatMap({ limiter.wait(of: $0.id, now: now) }) {
            rule.reason += "; the user's earlier requests cost more than one each, which is to be paid first"
            rule.fires = true
            rule.resetSeconds = Double(wait) / 1_000
        }
        return rule
    }

    private static func text(_ number: Double) -> String { String((number * 10).rounded() / 10) }

    private func quotas(
        of database: DatabaseKey, action: Action, _ directory: DirectorySnapshot
    ) async throws(RequestFailure) -> [Rule] {
        let isGrowing = action == .saveRecords
        let cap = service.quotas.quota(of: database, in: directory).cap
        let used = try await ContainerUsage.used(database, in: service, by: service.deadline())
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
                used: used.assets, fires: isGrowing && service.node.hasAssets && used.assets >= cap.assets,
                reason:
                    "bytes of assets of \(isPublic ? "the public database" : "the user"); only new references are refused"
            ),
        ]
        if isPublic {
            let (carried, limit) = try await service.usage.transfer(
                of: database, in: directory, by: service.deadline())
            rules.append(
                Rule(
                    name: ContainerLimit.transferBytesPerMonth.rawValue, limit: limit, used: carried,
                    fires: (isGrowing || action == .uploadAssets) && carried >= limit,
                    reason: "bytes that this month's requests for public data carried, as far as this node knows"))
        }
        return rules
    }

    private static func sizes(of action: Action, _ limits: ContainerLimits) -> [Rule] {
        var rules = [
            Rule(
                name: "requestBodyBytes", limit: Int64(Limits.requestBodyBytesMax),
                reason: "bytes of one request's body")
        ]
        switch action {
        case .saveRecords, .modifyZones:
            rules.append(
                Rule(name: "operations", limit: Int64(Limits.operationsMax), reason: "operations of one request"))
            rules.append(
                Rule(
                    name: "recordBytes", limit: Int64(Limits.recordSizeBytesMax), reason: "bytes of one record's fields"
                ))
        case .readRecords:
            rules.append(
                Rule(name: "recordsPerPage", limit: Int64(Limits.recordsPerPageMax), reason: "records of one answer"))
        case .uploadAssets:
            for (limit, reason) in [
                (ContainerLimit.assetUploadBytes, "bytes of one uploaded file"),
                (.assetUploadBytesMax, "bytes of one uploaded file whose size was announced"),
            ] { rules.append(Rule(name: limit.rawValue, limit: limits[limit], reason: reason)) }
        case .preferences, .other: break
        }
        return rules
    }
}

extension UnsavedUploads {
    /// What a user uploads and saves in no record, and the uploads that are under way; those of a user are not known
    /// where none is named.
    fileprivate func rules(
        of user: String?, in container: String, limit: Int64, now: Int64
    ) -> [LimitExplanation.Rule] {
        let use = user.map { self.use(of: $0, in: container, now: now) }
        func places(of whom: String, _ limit: Int, _ used: Int?) -> LimitExplanation.Rule {
            LimitExplanation.Rule(
                name: "\(whom)Uploads", limit: Int64(limit), used: used.map { Int64($0) },
                fires: used.map { $0 >= limit } ?? false,
                reason:
                    "uploads of the \(whom) that one node takes at once, half as many while others have much; further ones "
                    + "are to be tried again")
        }
        return [
            LimitExplanation.Rule(
                name: ContainerLimit.unsavedAssetBytes.rawValue, limit: limit, used: use?.bytes,
                fires: use.map { $0.bytes + Self.bytesMin > limit } ?? false,
                reason: "bytes that a user uploads in a day and saves in no record, as far as this node knows"),
            places(of: "user", userOpenMax, use?.open),
            places(of: "container", containerOpenMax, open(in: container)),
        ]
    }
}
