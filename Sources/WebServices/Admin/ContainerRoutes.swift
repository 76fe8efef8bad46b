import Directory
import RecordModel
import Service

/// `/admin/1/containers`.
struct ContainerRoutes {
    let request: AdminRequest
    private var containers: ContainerAdministration { request.administration.containers }

    func list() async throws(RequestFailure) -> Reply {
        let containers = try await containers.list()
        return Reply { writer in
            writer.list("containers", containers) { container, writer in
                writer.member("name", container.name)
                writer.member("created", integer: container.created)
                writer.member("keys", count: container.keys)
                writer.member("users", count: container.users)
                writer.member("hidden", container.details.isHidden)
                if !container.details.note.isEmpty { writer.member("note", container.details.note) }
                Self.write(container.deletion, to: &writer)
            }
        }
    }

    private static func write(_ deletion: ContainerDeletion?, to writer: inout JSONWriter) {
        writer.optional("deleted", integer: deletion?.deleted)
        if deletion?.isPurging == false { writer.optional("restorableUntil", integer: deletion?.restorableUntil) }
    }

    func create() async throws(RequestFailure) -> Reply {
        let name = try AdminRequest.containerName(try request.json().text("name"))
        try await containers.create(name)
        return Reply { $0.member("name", name) }
    }

    /// Hides a container or shows it, and gives it a note.
    func describe() async throws(RequestFailure) -> Reply {
        let json = try request.json()
        let name = try AdminRequest.containerName(try json.text("name"))
        let details = try await containers.describe(
            name, isHidden: try json.flag("hidden"), note: try json.optionalLine("note"))
        return Reply { writer in
            writer.member("name", name)
            writer.member("hidden", details.isHidden)
            writer.member("note", details.note)
        }
    }

    func rotateKey() async throws(RequestFailure) -> Reply {
        let container = try request.url.need("container")
        let number = try await containers.rotateKey(of: container)
        return Reply { writer in
            writer.member("container", container)
            writer.member("key", count: number)
        }
    }

    func delete() async throws(RequestFailure) -> Reply {
        let name = try AdminRequest.containerName(try request.url.need("name"))
        guard try request.url.need("confirm") == name else {
            throw .badRequest(
                "confirm: the container's own name is expected, '\(name)': its clients are refused from then on")
        }
        let deletion = try await containers.delete(name)
        return Reply { writer in
            writer.member("name", name)
            Self.write(deletion, to: &writer)
        }
    }

    func restore() async throws(RequestFailure) -> Reply {
        let name = try AdminRequest.containerName(try request.url.need("name"))
        try await containers.restore(name)
        return Reply { $0.member("name", name) }
    }
}

/// `/admin/1/limits`: what containers are held to.
struct LimitRoutes {
    let request: AdminRequest
    private var containers: ContainerAdministration { request.administration.containers }
    /// Nil for the cluster's own values.
    private var container: String? { request.url.text("container") }

    func show() async throws(RequestFailure) -> Reply { reply(try await containers.limits(of: container)) }

    /// Sets what the body names; null takes a value back. Answers with all limits as they are then.
    func set() async throws(RequestFailure) -> Reply {
        let changes = try changes()
        guard !changes.isEmpty else {
            throw .badRequest(
                "nothing to change: a limit and its value, such as {\"requestsPerSecond\": 40}, is expected")
        }
        return reply(try await containers.setLimits(of: container, changes))
    }

    private func changes() throws(RequestFailure) -> [LimitChange] {
        var changes: [LimitChange] = []
        for member in try request.body.jsonMembers() {
            guard let limit = ContainerLimit(rawValue: member.key) else {
                let names = ContainerLimit.allCases.map(\.rawValue).joined(separator: ", ")
                throw .badRequest("'\(member.key)' is no limit: there are \(names)")
            }
            switch member.value {
            case .null: changes.append(LimitChange(limit, nil))
            case .integer(let value) where limit.range.contains(value): changes.append(LimitChange(limit, value))
            default:
                throw .badRequest(
                    "\(limit.rawValue): a whole number (\(limit.unit.rawValue)) from \(limit.range.lowerBound) to "
                        + "\(limit.range.upperBound), or null to take it back, is expected, not "
                        + String(decoding: member.value.serialized(), as: UTF8.self).prefix(40))
            }
        }
        return changes
    }

    private func reply(_ directory: DirectorySnapshot) -> Reply {
        Reply { writer in
            if let container {
                writer.member("container", container)
                writer.member("users", count: directory.userCount(of: container))
            }
            writer.list("limits", ContainerLimit.allCases) { limit, writer in
                let (value, source) = directory.limit(limit, of: container)
                writer.member("name", limit.rawValue)
                writer.member("value", integer: value)
                writer.member("source", source.rawValue)
                writer.member("unit", limit.unit.rawValue)
            }
            writer.object("effective") { writer in
                guard let container else { return }
                Self.write(directory.limits(of: container), users: directory.userCount(of: container), to: &writer)
            }
        }
    }

    /// What follows from the values with so many users.
    private static func write(_ limits: ContainerLimits, users: Int, to writer: inout JSONWriter) {
        for (limit, value) in [
            (ContainerLimit.requestsPerSecond, limits.requestsPerSecond(users: users)),
            (.keyValueRequestsPerSecond, limits.keyValueRequestsPerSecond(users: users)),
            (.concurrentRequests, limits[.concurrentRequests]), (.databaseBytes, limits.databaseBytes(users: users)),
            (.databaseRecords, limits[.databaseRecords]), (.assetBytes, limits.assetBytes(users: users)),
            (.transferBytesPerMonth, limits.transferBytesPerMonth(users: users)), (.userBytes, limits[.userBytes]),
            (.userRecords, limits[.userRecords]), (.userAssetBytes, limits[.userAssetBytes]),
        ] { writer.member(limit.rawValue, integer: value) }
    }

    // MARK: What a request would be held to

    private static let preferenceActions = ["kv/get", "kv/list", "kv/set", "kv/changes"]

    /// `GET limits/explain`.
    func explain() async throws(RequestFailure) -> Reply {
        let url = request.url
        let key = try url.schemaKey()
        let action = try explainedAction()
        let text = action == .preferences ? Scope.private.rawValue : url["database"] ?? "public"
        guard let scope = Scope(rawValue: text) else {
            throw .badRequest("database: 'public' or 'private' is expected, not '\(text)'")
        }
        if scope == .shared { throw .notBuilt("the shared database") }
        let rules = try await request.administration.limits.rules(
            for: action, of: url.text("user"), to: scope, in: key)
        let firing = rules.first(where: \.fires)
        return Reply { writer in
            writer.list("rules", rules) { Self.write($0, to: &$1) }
            writer.member("verdict", firing.map { "refused by \($0.name): \($0.reason)" } ?? "allowed")
        }
    }

    /// What the request does: one of the database's actions, or of the preferences'.
    private func explainedAction() throws(RequestFailure) -> LimitExplanation.Action {
        let text = request.url["action"] ?? "records/modify"
        let known = DatabaseAction.all.map(\.path) + Self.preferenceActions
        guard known.contains(text) else {
            throw .badRequest("action: one of \(known.joined(separator: ", ")) is expected, not '\(text)'")
        }
        return switch text {
        case "records/modify": .saveRecords
        case "zones/modify": .modifyZones
        case "records/query", "changes/zone", "records/lookup": .readRecords
        case "assets/upload": .uploadAssets
        default: Self.preferenceActions.contains(text) ? .preferences : .other
        }
    }

    private static func write(_ rule: LimitExplanation.Rule, to writer: inout JSONWriter) {
        writer.member("name", rule.name)
        writer.member("limit", integer: rule.limit)
        writer.optional("used", integer: rule.used)
        if rule.limit != ContainerLimit.unlimited {
            writer.optional("remaining", integer: rule.remaining ?? rule.used.map { max(rule.limit - $0, 0) })
        }
        if let reset = rule.resetSeconds { writer.member("resetSeconds", number: reset) }
        writer.member("fires", rule.fires)
        writer.member("reason", rule.reason)
    }
}
