import Foundation

/// What the service knows of records beyond what apps see: how they come from the server, go to it and take over its
/// answer.
extension CKRecord {
    /// A record from the server.
    convenience init(
        id: CKRecord.ID, type: RecordType, system: SystemFields, values: [String: RecordValue],
        encryptedKeys: Set<String> = []
    ) {
        let server = ServerState(system: system, values: values, encryptedKeys: encryptedKeys)
        self.init(type: type, id: id, state: RecordState(server))
    }

    /// All of the record at this moment.
    func snapshot() -> RecordSnapshot {
        RecordSnapshot(id: recordID, type: recordType, state: current)
    }

    /// Takes over what the server has after `sent` was saved. A key that was edited since the snapshot was taken
    /// keeps its value and stays changed; every other key has the server's value and is no longer changed.
    /// - Parameter part: what of the snapshot went out; nil where the server tells all that it has.
    func saved(as server: ServerState, sent: RecordSnapshot, part: SentPart? = nil) {
        update { $0.saved(as: server, sent: sent.state, part: part) }
    }

    /// The record as last known from the server, for a conflict; nil where it never came from there. A record
    /// restored from its system fields has an ancestor without values: nobody kept them.
    func ancestor() -> CKRecord? {
        guard let base = current.base else { return nil }
        return CKRecord(type: recordType, id: recordID, state: RecordState(base))
    }
}

/// A record at a moment: what a save sends.
struct RecordSnapshot: Sendable {
    let id: CKRecord.ID
    let type: CKRecord.RecordType
    fileprivate let state: RecordState

    fileprivate init(id: CKRecord.ID, type: CKRecord.RecordType, state: RecordState) {
        self.id = id
        self.type = type
        self.state = state
    }

    var system: SystemFields { state.system }
    /// All values, encrypted ones too.
    var values: [String: RecordValue] { state.values }
    var encryptedKeys: Set<String> { state.encryptedKeys }
    /// The keys that were set or removed since the record was fetched or saved, sorted. One without a value was
    /// removed.
    var changedKeys: [String] { state.changedKeys }
    /// Whether the parent was set or removed since then.
    var isParentChanged: Bool { state.parentEdit != nil }
    /// The record as last known from the server.
    var base: ServerState? { state.base }

    /// Fails with `invalidArguments` where a value cannot be stored, and names the field.
    func validate() throws(CKError) {
        guard values.contains(where: { $0.value.fault != nil }) else { return }
        for key in values.keys.sorted() {
            guard let fault = values[key]?.fault else { continue }
            throw CKError(
                .invalidArguments,
                reason: "the field \"\(key)\" of the record \"\(id.recordName)\" was set to \(fault): a field holds "
                    + "text, a number, a date, bytes, a place, a reference, an asset, or a list of one of these")
        }
    }
}
