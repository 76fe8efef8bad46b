import Crypto
package import RecordModel
import Synchronization
package import Wire

/// Where an encrypted value belongs. A sealed value opens nowhere else: not in another field, record, zone or user's
/// database.
package struct FieldPlace: Hashable, Sendable {
    /// The zone, with the container, environment, scope and owner of its database.
    package var zone: ZoneKey
    /// The record's name in the zone.
    package var recordName: String
    /// The field's name in the record's type.
    package var field: String

    package init(zone: ZoneKey, recordName: String, field: String) {
        self.zone = zone
        self.recordName = recordName
        self.field = field
    }
}

/// Seals and opens the values of encrypted fields with their containers' data keys.
///
/// A data key is 32 random bytes, wrapped by the cluster's encryption key and stored in the directory. After a rotation
/// a new key seals, and the earlier ones still open what they sealed. Each record has a key of its own, derived from
/// the data key, so that random nonces do not repeat however many values a container has. The cipher is AES-256-GCM. A
/// sealed value reveals its length only.
///
/// Thread-safe. It knows the keys of this node's last copy of the directory (`update`); a key made on another node a
/// moment ago may be missing: then opening should be retried soon.
package final class FieldVault: Sendable {
    private struct State {
        /// As the directory has them.
        var wrapped: [String: [ContainerKey]] = [:]
        var secret: ClusterSecret?
        /// Data keys in clear, by container and number, as they were needed.
        var keys: [String: [UInt64: SymmetricKey]] = [:]
    }

    /// A length of the cluster's key, and of data keys, in bytes.
    package static let keyBytes = 32

    private let clusterKey: SymmetricKey?
    private let state = Mutex(State())

    /// - Parameter clusterKey: 32 bytes; without it every sealing and opening fails with a reason.
    package init(clusterKey: [UInt8]?) {
        precondition(clusterKey == nil || clusterKey?.count == Self.keyBytes, "\(clusterKey?.count ?? 0) bytes of key")
        self.clusterKey = clusterKey.map { SymmetricKey(data: $0) }
    }

    /// Takes over the containers' keys and the cluster's secret of the directory.
    package func update(_ snapshot: DirectorySnapshot) {
        let (keys, secret) = (snapshot.containerKeys, snapshot.secret)
        state.withLock { state in
            // A container that was purged and created again has other keys by the same numbers.
            let known = state.wrapped
            state.keys = state.keys.filter { keys[$0.key]?.first == known[$0.key]?.first }
            state.wrapped = keys
            state.secret = secret
        }
    }

    /// The cluster's secret, as far as this node knows.
    package var secret: ClusterSecret? { state.withLock(\.secret) }

    /// The number of the key that seals; nil until the container has one: then `newContainerKey(number: 1, ...)` makes
    /// it, and the command `addContainerKey` gives it to the cluster.
    package func currentKey(of container: String) -> UInt64? {
        state.withLock { $0.wrapped[container]?.last?.number }
    }

    /// Whether fields are sealed by a key that this node has not heard of yet: it is a moment behind the directory.
    package func isBehind(_ fields: Fields, of container: String) -> Bool {
        let known = currentKey(of: container) ?? 0
        return fields.all.contains { field in
            guard case .sealed(let bytes) = field.value, let number = Self.split(bytes)?.number else { return false }
            return number > known
        }
    }

    /// A new random data key, wrapped. It belongs to this container under this number and to no other.
    /// - Throws: `INTERNAL_ERROR` where the node has no encryption key, or one that does not open the keys that there
    ///   are; the reason says how to mend that.
    package func newContainerKey(number: UInt64, container: String) throws(ServiceError) -> ContainerKey {
        let clusterKey = try requiredClusterKey()
        // A node that was given another key must not begin a second set of data keys.
        let known = state.withLock { state in
            state.wrapped.min { $0.key < $1.key }.flatMap { entry in entry.value.last.map { (entry.key, $0.number) } }
        }
        if let (container, number) = known { _ = try dataKey(number, of: container) }
        let key = SymmetricKey(size: .bits256)
        let bytes = key.withUnsafeBytes { Array($0) }
        let wrapped = try Self.encrypt(
            bytes, with: clusterKey, binding: Self.binding(ofKey: number, container: container))
        return ContainerKey(number: number, wrapped: [Self.version] + wrapped)
    }

    /// Makes `.sealed` of `.encrypted`; any other value is returned as it is.
    /// - Throws: `INTERNAL_ERROR` where the node has no encryption key or another than the cluster's, or the container
    ///   has no data key yet (see `currentKey`).
    package func seal(
        _ value: FieldValue, container: String, place: FieldPlace
    ) throws(ServiceError) -> FieldValue {
        guard case .encrypted(let plain) = value else { return value }
        _ = try requiredClusterKey()
        guard let number = currentKey(of: container) else {
            throw ServiceError(
                .internalError,
                "container '\(container)' has no data key for encrypted fields yet; it is made at the first need")
        }
        let key = try dataKey(number, of: container)
        let sealed = try Self.encrypt(
            plain.encoded(), with: Self.recordKey(key, place), binding: Self.binding(of: place, number: number))
        return .sealed([Self.version] + Self.bigEndian(number) + sealed)
    }

    /// Makes `.encrypted` of `.sealed`; any other value is returned as it is.
    /// - Throws: `INTERNAL_ERROR` where the bytes were damaged or belong elsewhere, or the node has not the cluster's
    ///   encryption key; `TRY_AGAIN_LATER` where the data key has not reached this node yet. The reason says which, and
    ///   shows nothing of the value.
    package func open(
        _ value: FieldValue, container: String, place: FieldPlace
    ) throws(ServiceError) -> FieldValue {
        guard case .sealed(let bytes) = value else { return value }
        let (number, body) = try Self.parts(of: bytes, place)
        let key = try dataKey(number, of: container)
        guard
            let plain = Self.decrypt(
                body, with: Self.recordKey(key, place), binding: Self.binding(of: place, number: number))
        else {
            throw Self.unreadable(
                place, "its bytes are damaged, or were copied from another place; restore the record from a backup")
        }
        do throws(WireError) {
            return .encrypted(try FieldValue(decoding: plain))
        } catch {
            throw Self.unreadable(place, "what was sealed is no value that this version knows; use a newer version")
        }
    }
}

// Keys.
extension FieldVault {
    /// How many rotations a node may be behind; what is further ahead is no key's number.
    private static let keysBehindMax: UInt64 = 8

    func requiredClusterKey() throws(ServiceError) -> SymmetricKey {
        guard let clusterKey else {
            throw ServiceError(
                .internalError,
                "encrypted fields need the cluster's encryption key, which this node does not have: `zonekeeper certs create` "
                    + "makes certs/encryption.key; bring the same file to every node, and restart them")
        }
        return clusterKey
    }

    /// A data key in clear, unwrapped at its first use.
    private func dataKey(_ number: UInt64, of container: String) throws(ServiceError) -> SymmetricKey {
        let clusterKey = try requiredClusterKey()
        let (known, wrapped) = state.withLock { state in
            (state.keys[container]?[number], state.wrapped[container]?.first { $0.number == number }?.wrapped)
        }
        if let known { return known }
        guard let wrapped else {
            let last = currentKey(of: container) ?? 0
            guard number > last, number - last <= Self.keysBehindMax else {
                throw ServiceError(
                    .internalError, "container '\(container)' has no data key \(number): the sealed value is damaged")
            }
            // Keys are added one by one and never removed: this node is a moment behind the directory.
            throw ServiceError(
                .tryAgainLater, "data key \(number) of container '\(container)' has not reached this node yet",
                retryAfterSeconds: 1)
        }
        guard wrapped.first == Self.version,
            let bytes = Self.decrypt(
                wrapped.dropFirst(), with: clusterKey, binding: Self.binding(ofKey: number, container: container)),
            bytes.count == Self.keyBytes
        else {
            throw ServiceError(
                .internalError,
                "data key \(number) of container '\(container)' does not open with this node's encryption key: put the cluster's "
                    + "own key file (certs/encryption.key) back on this node, and restart it")
        }
        let key = SymmetricKey(data: bytes)
        state.withLock { $0.keys[container, default: [:]][number] = key }
        return key
    }

    /// The key of one record, by HMAC-SHA-256 from the data key.
    private static func recordKey(_ key: SymmetricKey, _ place: FieldPlace) -> SymmetricKey {
        var writer = WireWriter()
        writer.field(1, "zonekeeper record key")
        writer.field(2) { write(place.zone, to: &$0) }
        writer.field(3, place.recordName)
        return SymmetricKey(data: HMAC<SHA256>.authenticationCode(for: writer.bytes, using: key))
    }
}

// The forms: version (1 byte), for values the key's number (8 bytes, big-endian), nonce (12), ciphertext, tag (16).
extension FieldVault {
    static let version: UInt8 = 1
    private static let overheadBytes = 1 + 8 + 12 + 16

    static func encrypt(
        _ bytes: [UInt8], with key: SymmetricKey, binding: [UInt8]
    ) throws(ServiceError) -> [UInt8] {
        guard let box = try? AES.GCM.seal(bytes, using: key, authenticating: binding), let combined = box.combined
        else {
            throw ServiceError(.internalError, "an encrypted value cannot be sealed: AES-GCM failed")
        }
        return Array(combined)
    }

    static func decrypt(
        _ bytes: some Collection<UInt8>, with key: SymmetricKey, binding: [UInt8]
    ) -> [UInt8]? {
        guard let box = try? AES.GCM.SealedBox(combined: Array(bytes)) else { return nil }
        return (try? AES.GCM.open(box, using: key, authenticating: binding)).map { Array($0) }
    }

    private static func split(_ bytes: [UInt8]) -> (number: UInt64, body: ArraySlice<UInt8>)? {
        guard bytes.count >= overheadBytes, bytes[0] == version else { return nil }
        return (bytes[1..<9].reduce(0) { $0 << 8 | UInt64($1) }, bytes[9...])
    }

    private static func parts(
        of bytes: [UInt8], _ place: FieldPlace
    ) throws(ServiceError) -> (number: UInt64, body: ArraySlice<UInt8>) {
        guard let parts = split(bytes) else {
            if let first = bytes.first, first > version {
                throw unreadable(place, "it has form \(first), which this version does not know; use a newer version")
            }
            throw unreadable(place, "its bytes are damaged; restore the record from a backup")
        }
        return parts
    }

    private static func unreadable(_ place: FieldPlace, _ why: String) -> ServiceError {
        ServiceError(
            .internalError,
            "the encrypted field '\(place.field)' of record '\(place.recordName)' in zone '\(place.zone.name)' cannot be opened: "
                + why)
    }

    private static func bigEndian(_ number: UInt64) -> [UInt8] {
        withUnsafeBytes(of: number.bigEndian) { Array($0) }
    }

    private static func binding(ofKey number: UInt64, container: String) -> [UInt8] {
        var writer = WireWriter()
        writer.field(1, "zonekeeper container key")
        writer.field(2, container)
        writer.field(3, number)
        return writer.bytes
    }

    private static func binding(of place: FieldPlace, number: UInt64) -> [UInt8] {
        var writer = WireWriter()
        writer.field(1, "zonekeeper field value")
        writer.field(2) { write(place.zone, to: &$0) }
        writer.field(3, place.recordName)
        writer.field(4, place.field)
        writer.field(5, number)
        return writer.bytes
    }

    private static func write(_ zone: ZoneKey, to writer: inout WireWriter) {
        writer.field(1, zone.database.container)
        writer.field(2, zone.database.environment.rawValue)
        writer.field(3, zone.database.scope.rawValue)
        writer.field(4, zone.database.owner)
        writer.field(5, zone.name)
    }
}

// Secrets of the cluster itself, such as those of identity providers: few, sealed with the cluster's key.
extension FieldVault {
    /// Seals a secret; it opens with the same purpose only. Empty stays empty.
    /// - Parameter purpose: the kind and owner of the secret, such as `provider/NAME`.
    /// - Throws: `INTERNAL_ERROR` if the node has no encryption key.
    package func sealSecret(_ secret: [UInt8], purpose: String) throws(ServiceError) -> [UInt8] {
        if secret.isEmpty { return [] }
        let key = try requiredClusterKey()
        return try [Self.version] + Self.encrypt(secret, with: key, binding: Self.binding(ofSecret: purpose))
    }

    /// The secret that was sealed for this purpose.
    /// - Throws: `INTERNAL_ERROR` where the node has no encryption key or another than the cluster's, or the bytes are
    ///   damaged or were sealed for something else; the reason shows nothing of the secret.
    package func openSecret(_ sealed: [UInt8], purpose: String) throws(ServiceError) -> [UInt8] {
        guard let version = sealed.first else { return [] }
        let key = try requiredClusterKey()
        guard version == Self.version,
            let secret = Self.decrypt(sealed.dropFirst(), with: key, binding: Self.binding(ofSecret: purpose))
        else {
            throw ServiceError(
                .internalError,
                "the secret of '\(purpose)' does not open with this node's encryption key: put the cluster's own key file "
                    + "(certs/encryption.key) back on this node and restart it, or give the secret anew")
        }
        return secret
    }

    private static func binding(ofSecret purpose: String) -> [UInt8] {
        var writer = WireWriter()
        writer.field(1, "zonekeeper secret")
        writer.field(2, purpose)
        return writer.bytes
    }
}

/// One data key of a container, as the directory keeps it: wrapped by the cluster's encryption key, never in clear.
package struct ContainerKey: Hashable, Sendable, WireMessage {
    /// From 1, one more with each rotation; values say which key sealed them.
    package var number: UInt64
    /// See `FieldVault.newContainerKey`.
    package var wrapped: [UInt8]

    package static var blank: Self { ContainerKey(number: 0, wrapped: []) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &number)
        try wire.field(2, &wrapped)
    }
}
