import Admission
import Cluster
import Directory
import RecordModel
import Wire

/// What a position that clients carry is one of. Each is sealed for itself and opens as nothing else.
///
/// Positions have names of zones, and sort keys of records, which their reader may not be allowed to read; and nobody
/// shall make one that this cluster did not give.
enum SealedPosition: String {
    case marker = "query marker"
    case zone = "zone token"
    case database = "database token"
    /// Sealed by the shard's leader, which renders the page that has it.
    case preferences = "preferences token"
    /// The same.
    case notifications = "notifications token"

    /// - Parameter text: as a client sent it, in base64.
    /// - Throws: `BAD_REQUEST` for what this cluster did not give, and, after `ClusterSecret.clearUntil`, for what it
    ///   gave before it had its secret: beginning without it helps. `TRY_AGAIN_LATER` where this node cannot open it
    ///   yet.
    func open(_ text: String?, in service: RecordService) async throws(RequestFailure) -> [UInt8]? {
        guard let text, !text.isEmpty else { return nil }
        guard let bytes = Base64.decode(text) else { throw foreign }
        if !ClusterSecret.isSealed(bytes) {
            if let secret = service.directory.secret {
                try service.judgedByClock { now throws(RequestFailure) in
                    if !secret.takesClear(at: now) { throw foreign }
                }
            }
            return try openEarlier(bytes, service.signer)
        }
        guard let position = try await service.requireSecret().open(bytes, purpose: rawValue) else { throw foreign }
        return position
    }

    /// Base64, as all positions are.
    func text(of position: [UInt8], in service: RecordService) -> String {
        Base64.encode(bytes(of: position, in: service))
    }

    /// The sealed position, or, while the cluster has no secret, what builds without it give.
    func bytes(of position: [UInt8], in service: RecordService) -> [UInt8] {
        if let secret = service.directory.secret { return secret.seal(position, purpose: rawValue) }
        guard self == .marker, let signer = service.signer else { return position }
        return Array(signer.ticket(position, purpose: Self.earlierMarker, expires: .max).utf8)
    }

    private static let earlierMarker = "marker"

    /// Before clusters had a secret, markers were sealed where nodes had an encryption key, and tokens never.
    private func openEarlier(_ bytes: [UInt8], _ signer: SessionSigner?) throws(RequestFailure) -> [UInt8] {
        guard self == .marker, let signer else { return bytes }
        let text = String(decoding: bytes, as: UTF8.self)
        guard let position = signer.openTicket(text, purpose: Self.earlierMarker, now: 0) else { throw foreign }
        return position
    }

    private var foreign: RequestFailure {
        switch self {
        case .marker: RequestFailure(.badRequest, "continuationMarker: it is not one that this server gave")
        case .zone, .database, .preferences, .notifications:
            RequestFailure(
                ServiceError(
                    .badRequest,
                    "Unknown sync continuation type: syncToken is not one that this server gave for this, or is of an earlier "
                        + "version; start again without a token", detail: .expiredSyncToken))
        }
    }
}

/// A sync token of a database: a position in the feed of each of its shards.
struct DatabaseToken: Hashable, Sendable {
    /// A position in one shard's feed of the database; zeros are its beginning.
    struct Place: Hashable, Sendable {
        var incarnation: UInt64 = 0
        var position: UInt64 = 0
    }

    /// Which database it is of.
    private var database: UInt64
    /// By group; a group that is missing is at its beginning.
    var places: [UInt64: Place] = [:]
    /// Which shard comes first: another with each page that could not take all, so that a busy one cannot keep the
    /// others out.
    var turn: UInt64 = 0

    /// - Parameter bytes: the token as it was opened; nil is the beginning.
    /// - Throws: `BAD_REQUEST` for what is no token of this database.
    init(_ bytes: [UInt8]?, of key: DatabaseKey) throws(RequestFailure) {
        database = Self.hash(key)
        guard let bytes else { return }
        guard let known = try? DatabaseToken(decoding: bytes), known.database == database else {
            throw RequestFailure(
                ServiceError(
                    .badRequest,
                    "Unknown sync continuation type: syncToken is not one of this database's; start again without a token",
                    detail: .expiredSyncToken))
        }
        self = known
    }

    /// FNV-1a: the same on every node.
    private static func hash(_ key: DatabaseKey) -> UInt64 {
        fnv1a(key.encoded())
    }
}

extension DatabaseToken: WireMessage {
    private init(database: UInt64) { self.database = database }

    static var blank: Self { DatabaseToken(database: 0) }

    /// The numbers are others than those of a zone's token, so that one is never taken for the other.
    mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(4, &database)
        try wire.field(6, &turn, unless: 0)
        try wire.field(5, &placesByGroup)
    }

    private var placesByGroup: [GroupPlace] {
        get { places.sorted { $0.key < $1.key }.map { GroupPlace(group: $0.key, place: $0.value) } }
        set { places = Dictionary(newValue.map { ($0.group, $0.place) }) { $1 } }
    }

    private struct GroupPlace: WireMessage {
        var group: UInt64
        var place: Place

        static var blank: Self { GroupPlace(group: 0, place: Place()) }

        mutating func fields(_ wire: inout WireFields) throws(WireError) {
            try wire.field(1, &group)
            try wire.field(2, &place.incarnation)
            try wire.field(3, &place.position)
        }
    }
}
