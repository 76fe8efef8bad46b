import Authorization
import Cluster
import Directory
import RaftCore
import RecordModel
import RecordStore
import Synchronization

/// The files that the operations of one request put into records: finds them by receipts, or among those that the
/// records have, and makes sure that they are there before a command names them.
final class AssetSaving: Sendable {
    private struct State {
        /// Files that operations were resolved to by receipts.
        var received: Set<AssetReference> = []
        /// Files that are on a majority of the zone's replicas.
        var held: Set<AssetReference> = []
        /// Files that no node has.
        var missing: Set<AssetReference> = []
        /// Whether a receipt was refused for its date.
        var hasExpired = false
    }

    private let service: RecordService
    private let zone: ZoneKey
    private let user: String
    private let now: Int64
    private let deadline: Deadline
    /// Nil where no operation has an asset.
    private let secret: ClusterSecret?
    private let present: PresentAssets
    private let state = Mutex(State())

    /// Reads what the records have whose operations send back what they read.
    init(
        _ operations: [(RecordOperation, String)], in zone: ZoneKey, _ request: DatabaseRequest
    ) async throws(RequestFailure) {
        service = request.service
        self.zone = zone
        user = request.caller.stampName
        deadline = request.deadline
        let dictionaries = operations.map { operation, _ in Self.fields(of: operation) }
        guard dictionaries.contains(where: { !$0.isEmpty }) else {
            now = service.now
            secret = nil
            present = PresentAssets()
            return
        }
        now = try service.trustedNow()
        let secret = try await service.requireSecret()
        self.secret = secret
        var kept: [KeptAssets] = []
        for ((operation, name), fields) in zip(operations, dictionaries) where operation.kind != .create {
            let fields = fields.filter { !$0.value.isEmpty }
            if !fields.isEmpty { kept.append(KeptAssets(recordName: name, fields: fields)) }
        }
        present = kept.isEmpty ? PresentAssets() : try await Assets(request).present(kept, in: zone, secret)
    }

    /// The fields of an operation that have asset dictionaries, and the checksums of those that lack a receipt.
    private static func fields(of operation: RecordOperation) -> [String: Set<String>] {
        if operation.kind.isDelete { return [:] }
        var fields: [String: Set<String>] = [:]
        for field in operation.fields {
            guard let json = field.value?.json else { continue }
            let members = json.array?.prefix { $0["fileChecksum"] != nil || $0["receipt"] != nil } ?? [json]
            guard let first = members.first, first["fileChecksum"] != nil || first["receipt"] != nil else { continue }
            fields[field.name] = Set(
                members.compactMap { $0["receipt"]?.string == nil ? $0["fileChecksum"]?.string : nil })
        }
        return fields
    }

    func resolver(of operation: RecordOperation, name: String) -> AssetResolver {
        AssetResolver { [self] (input, field) throws(AssetFault) in
            guard let text = input.receipt else {
                let place = PresentAsset(recordName: name, field: field, checksum: input.fileChecksum ?? "")
                guard let asset = present.files[place] else {
                    throw AssetFault(
                        "receipt",
                        "is missing, and the field '\(field)' of record '\(name)' has no such file that it could keep: upload the "
                            + "file, or use assets/rereference")
                }
                try requirePresence(of: asset)
                return asset
            }
            guard let receipt = secret?.ticket(Base64.decode(text), as: AssetReceipt.self) else {
                throw AssetFault("receipt", "is not one that this server gave")
            }
            try check(receipt, for: operation, field: field)
            try check(input, against: receipt.asset)
            state.withLock { _ = $0.received.insert(receipt.asset) }
            try requirePresence(of: receipt.asset)
            return receipt.asset
        }
    }

    /// Whether an operation keeps files of a version that its record has no more: then its change tag says so, too.
    func isStale(_ operation: RecordOperation, name: String) -> Bool {
        guard let tag = operation.changeTag, let version = present.versions[name] else { return false }
        return version != .stored(tag: tag)
    }

    private func requirePresence(of asset: AssetReference) throws(AssetFault) {
        guard state.withLock({ $0.missing.contains(asset) }) else { return }
        throw AssetFault("receipt", "its file is not there any more: upload it again")
    }

    private func check(
        _ receipt: AssetReceipt, for operation: RecordOperation, field: String
    ) throws(AssetFault) {
        guard now < receipt.expires else {
            state.withLock { $0.hasExpired = true }
            throw AssetFault("receipt", "has expired: receipts are good for a day. Upload the file again")
        }
        guard receipt.user == user else { throw AssetFault("receipt", "was given to another user") }
        guard receipt.zone == zone else {
            throw AssetFault("receipt", "is for another database or zone than '\(zone.name)'")
        }
        if let type = receipt.recordType, type != operation.recordType {
            throw AssetFault("receipt", "is for records of type '\(type)'")
        }
        if let other = receipt.field, other != field {
            throw AssetFault("receipt", "is for the field '\(other)', not '\(field)'")
        }
    }

    /// To be called before operations are refused.
    /// - Throws: `TRY_AGAIN_LATER` where one was for the date of its receipt, and the node's clock may be wrong.
    func requireNoClockDoubt() throws(RequestFailure) {
        guard state.withLock(\.hasExpired), let doubt = service.node.clockDoubt else { return }
        throw RequestFailure(ClusterError.unavailable(doubt))
    }

    private func check(_ input: AssetInput, against asset: AssetReference) throws(AssetFault) {
        if let size = input.size, size != asset.size {
            throw AssetFault("size", "is \(size), and the file that was uploaded has \(asset.size) bytes")
        }
        if let checksum = input.fileChecksum, checksum != secret?.checksum(of: asset, in: zone.database.container) {
            throw AssetFault("fileChecksum", "is not that of the file that was uploaded")
        }
    }

    /// Files asked for at once.
    private static let holdsMax = 16

    /// Has the zone's replicas hold what a command is about to name.
    /// - Returns: false where a file is nowhere any more: then the operations are to be resolved again, of which those
    ///   with that file fail.
    func hold(_ changes: [RecordChange]) async throws(RequestFailure) -> Bool {
        let values = changes.lazy.flatMap { $0.fields.lazy.compactMap(\.value) }
        let wanted = Set(values.flatMap(\.assets)).subtracting(state.withLock(\.held))
        guard !wanted.isEmpty else { return true }
        let group = service.node.map.group(of: zone)
        var failure: AssetError?
        var isComplete = true
        await withTaskGroup(of: (AssetReference, AssetError?).self) { [service, deadline] tasks in
            func begin(_ asset: AssetReference) {
                tasks.addTask {
                    do throws(AssetError) {
                        try await service.node.holdAsset(asset, in: group, by: deadline)
                        return (asset, nil)
                    } catch {
                        return (asset, error)
                    }
                }
            }
            var waiting = wanted.makeIterator()
            for _ in 0..<Self.holdsMax { if let asset = waiting.next() { begin(asset) } }
            for await (asset, error) in tasks {
                switch error {
                case nil: state.withLock { _ = $0.held.insert(asset) }
                case .missing:
                    isComplete = false
                    state.withLock { _ = $0.missing.insert(asset) }
                case let error?: failure = error
                }
                if let asset = waiting.next() { begin(asset) }
            }
        }
        if let failure { throw RequestFailure(failure) }
        return isComplete
    }

    /// Records have the files of these changes now: they count as unsaved no more.
    func didSave(_ changes: some Sequence<RecordChange>) {
        let received = state.withLock(\.received)
        guard !received.isEmpty else { return }
        let saved = Set(changes.flatMap { $0.fields.flatMap { $0.value?.assets ?? [] } }).intersection(received)
        guard !saved.isEmpty else { return }
        service.peerExchange.didSave(
            Array(saved), by: UnsavedUploads.Owner(container: zone.database.container, user: user))
    }
}
