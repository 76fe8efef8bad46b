package import RecordModel
package import Wire

/// A container that was deleted. Its name is taken, and everything of it is kept, until it is purged.
package struct ContainerDeletion: Hashable, Sendable {
    /// The container's name; no new container can have it before `ContainerEnd.remove`.
    package var name: String
    /// When the container was created, in milliseconds since 1970.
    package var created: Int64
    /// When it was deleted, likewise.
    package var deleted: Int64
    /// Whether its data are being removed; then nothing brings it back.
    package var isPurging = false

    /// How long a deleted container can be restored, in milliseconds.
    package static let graceMilliseconds: Int64 = 7 * 86_400_000

    /// From when on it is purged, in milliseconds since 1970.
    package var restorableUntil: Int64 { deleted + Self.graceMilliseconds }

    /// What a request of the container is told.
    package var refusal: ServiceError {
        let restore =
            isPurging
            ? "its data are being removed"
            : "until \(Self.date(restorableUntil)) an administrator can bring it back with `zonekeeper container restore \(name)`"
        return ServiceError(
            .notFound, "no container '\(name)' any more: it was deleted on \(Self.date(deleted)), and \(restore)",
            detail: .unknownContainer)
    }

    /// What is said to who wants to make a container of the name.
    package var claim: ServiceError {
        let date = Self.date(restorableUntil)
        let free =
            isPurging
            ? "when what it had is removed"
            : "after \(date), and until then `zonekeeper container restore \(name)` brings it back"
        return ServiceError(.exists, "'\(name)' was deleted on \(Self.date(deleted)); its name is free \(free)")
    }

    /// As reasons say a time.
    static func date(_ milliseconds: Int64) -> String { UTCTime(milliseconds: milliseconds).text }
}

extension ContainerDeletion: WireMessage {
    package static var blank: Self { ContainerDeletion(name: "", created: 0, deleted: 0) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &name)
        try wire.field(2, &created)
        try wire.field(3, &deleted)
        try wire.field(4, &isPurging, unless: false)
    }
}

/// What becomes of a container that is not wanted any more, in this order.
package enum ContainerEnd: Hashable, Sendable {
    /// Every request of it is refused from now on.
    case delete(time: Int64)
    /// It is as it was before `delete`.
    case restore(time: Int64)
    /// Its time is over: nothing brings it back, and its shards remove its rows.
    case purge(time: Int64)
    /// Removes some of its tokens and server keys, by their ids.
    case revoke(ids: [String])
    /// The last step, once nothing is left of it on any shard: its name is free.
    case remove

    var auditName: String {
        switch self {
        case .delete: "delete"
        case .restore: "restore"
        case .purge: "purge"
        case .revoke: "revoke-tokens"
        case .remove: "remove"
        }
    }
}

extension ContainerEnd: WireCodable {
    /// One field: 1 delete, 2 restore, 3 purge, each with its time, 4 an id to revoke (repeated), 5 remove.
    package func encode(to writer: inout WireWriter) {
        switch self {
        case .delete(let time): writer.field(1, signed: time)
        case .restore(let time): writer.field(2, signed: time)
        case .purge(let time): writer.field(3, signed: time)
        case .revoke(let ids): for id in ids { writer.field(4, id) }
        case .remove: writer.field(5, true)
        }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var end: ContainerEnd?
        var ids: [String] = []
        while let field = try reader.nextField() {
            switch field {
            case 1: end = .delete(time: try reader.signed())
            case 2: end = .restore(time: try reader.signed())
            case 3: end = .purge(time: try reader.signed())
            case 4: ids.append(try reader.string())
            case 5: end = try reader.bool() ? .remove : nil
            default: try reader.skip()
            }
        }
        self = end ?? .revoke(ids: ids)
    }
}
