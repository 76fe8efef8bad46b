import Foundation
import GRDB
import RecordModel
import Wire

/// The row of the cluster's map.
struct MapRow {
    let db: Database

    var installed: ClusterMap? { get throws { try db.message("SELECT body FROM map") } }

    func install(_ map: ClusterMap) throws -> [DirectoryChange] {
        if let installed = try installed {
            if installed == map { return [] }
            guard map.epoch > installed.epoch else {
                throw ServiceError(
                    .conflict, "the cluster's map has epoch \(installed.epoch), the offered one \(map.epoch)")
            }
        }
        return try write(map)
    }

    func change(_ change: MapChange) throws -> [DirectoryChange] {
        guard let installed = try installed else {
            throw ServiceError(.tryAgainLater, "the cluster is being made; try again in a moment", retryAfterSeconds: 1)
        }
        let map = try installed.changed(by: change)
        if map == installed { return [] }
        try Invariant.check(
            !map.nodes.isEmpty && map.shards.count == installed.shards.count,
            "the map would have \(map.nodes.count) nodes, and \(map.shards.count) shards in place of \(installed.shards.count)"
        )
        return try write(map)
    }

    private func write(_ map: ClusterMap) throws -> [DirectoryChange] {
        try db.run("INSERT OR REPLACE INTO map (id, body) VALUES (1, ?)", [map.body])
        return [.map(map)]
    }
}

/// What is set for the whole cluster.
struct DirectorySettings: Hashable, Sendable, WireMessage {
    var isSignUpOpen = false
    var limits = LimitOverrides()
    var secret: ClusterSecret?
    /// Containers that were deleted and are not purged yet, in the order in which they were deleted.
    var deletions: [ContainerDeletion] = []
    /// Sorted by name.
    var administrators: [Administrator] = []
    /// Sorted by name; none is empty.
    var containerDetails: [ContainerDetails] = []

    init() {}

    static var blank: Self { DirectorySettings() }

    mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &isSignUpOpen)
        try wire.field(2, &limits)
        try wire.field(3, &secret)
        try wire.field(4, &deletions)
        try wire.field(5, &administrators)
        try wire.field(6, &containerDetails)
    }

    /// Takes a container from what roles hold in; one that held in no other holds nowhere then.
    mutating func endRights(to container: String) -> [DirectoryChange] {
        let old = administrators
        for place in administrators.indices { administrators[place].containers?.removeAll { $0 == container } }
        return administrators == old ? [] : [.administrators(administrators)]
    }
}

/// The row of the cluster's settings.
struct SettingsRow {
    let db: Database

    var settings: DirectorySettings {
        get throws { try db.message("SELECT body FROM settings") ?? DirectorySettings() }
    }

    func write(_ settings: DirectorySettings) throws {
        try db.run("INSERT OR REPLACE INTO settings (id, body) VALUES (1, ?)", [settings.body])
    }

    /// Writes the settings as `body` makes them, where it says that something changed.
    func change(_ body: (inout DirectorySettings) throws -> [DirectoryChange]) throws -> [DirectoryChange] {
        var settings = try settings
        let changes = try body(&settings)
        if !changes.isEmpty { try write(settings) }
        return changes
    }

    func setSignUp(isOpen: Bool) throws -> [DirectoryChange] {
        try change { settings in
            if settings.isSignUpOpen == isOpen { return [] }
            settings.isSignUpOpen = isOpen
            return [.signUp(isOpen: isOpen)]
        }
    }

    func makeSecret(key: [UInt8], time: Int64) throws -> [DirectoryChange] {
        try change { settings in
            if settings.secret != nil { return [] }
            // Without a container nothing was ever given in clear.
            let isNew = try !db.has("SELECT 1 FROM container LIMIT 1")
            let secret = ClusterSecret(key: key, clearUntil: isNew ? 0 : time + ClusterSecret.clearMilliseconds)
            guard secret.isWhole else {
                throw ServiceError(
                    .badRequest, "a secret of \(ClusterSecret.keyBytes) bytes is expected, not \(key.count)")
            }
            settings.secret = secret
            return [.secret(secret)]
        }
    }
}

/// The rows of containers' limits; those of all containers are among the settings.
struct LimitRows {
    let db: Database

    func set(of container: String?, _ changes: [LimitChange]) throws -> [DirectoryChange] {
        for change in changes {
            guard let value = change.value, !change.limit.range.contains(value) else { continue }
            let range = change.limit.range
            throw ServiceError(
                .badRequest,
                "\(change.limit.rawValue): \(value) is outside \(range.lowerBound) to \(range.upperBound) "
                    + change.limit.unit.rawValue)
        }
        guard let container else {
            return try SettingsRow(db: db).change { settings in
                settings.limits.apply(changes) ? [.limits(container: nil, settings.limits)] : []
            }
        }
        try ContainerRows(db: db).require(container)
        return try change(container, from: overrides(of: container) ?? LimitOverrides(), changes)
    }

    /// Takes all values from a container that is removed. Its epoch never starts over.
    func clear(_ container: String) throws -> [DirectoryChange] {
        guard let overrides = try overrides(of: container) else { return [] }
        return try change(container, from: overrides, overrides.values.keys.map { LimitChange($0, nil) })
    }

    private func overrides(of container: String) throws -> LimitOverrides? {
        try db.message("SELECT body FROM limits WHERE container = ?", [container])
    }

    /// A row without values stays, so that its epoch does not restart.
    private func change(
        _ container: String, from old: LimitOverrides, _ changes: [LimitChange]
    ) throws -> [DirectoryChange] {
        var overrides = old
        guard overrides.apply(changes) else { return [] }
        try db.run("INSERT OR REPLACE INTO limits (container, body) VALUES (?, ?)", [container, overrides.body])
        return [.limits(container: container, overrides)]
    }
}

/// The rows of identity providers.
struct ProviderRows {
    let db: Database

    func provider(_ name: String) throws -> IdentityProvider? {
        try db.message("SELECT body FROM provider WHERE name = ?", [name])
    }

    func set(_ provider: IdentityProvider) throws -> [DirectoryChange] {
        guard !provider.name.isEmpty, !provider.issuer.isEmpty, !provider.clientID.isEmpty else {
            throw ServiceError(.badRequest, "an identity provider needs a name, an issuer and a client id")
        }
        let old = try Data.fetchOne(db, sql: "SELECT body FROM provider WHERE name = ?", arguments: [provider.name])
        if old == provider.body { return [] }
        try db.run("INSERT OR REPLACE INTO provider (name, body) VALUES (?, ?)", [provider.name, provider.body])
        return [.provider(provider)]
    }

    func remove(_ name: String) throws -> [DirectoryChange] {
        try db.run("DELETE FROM provider WHERE name = ?", [name])
        guard db.changesCount > 0 else {
            throw ServiceError(
                .notFound, "no identity provider '\(name)': `zonekeeper provider list` shows those that exist")
        }
        return [.providerRemoved(name: name)]
    }
}
