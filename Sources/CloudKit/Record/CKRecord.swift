public import Foundation
import Synchronization

/// A record: values under keys, in a zone, of a record type, as CloudKit has them.
///
/// Any task may read and set it at any time: its state lies behind a lock. Two variables may hold the same record;
/// equal means the same instance. A save changes the instance that was passed to it: values and tag become the
/// server's, edits made while it was under way are kept and stay in `changedKeys()`.
///
/// What a field may hold is checked when the record is saved, by the SDK and the server, not when it is set.
// @unchecked: what changes is `state`, behind its lock; all else is immutable and Sendable. Not final for CKShare.
public class CKRecord: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
    /// The name of a record type.
    public typealias RecordType = String
    /// The name of a field.
    public typealias FieldKey = String
    /// The name of a record and of its zone.
    public typealias ID = CKRecordID
    /// A pointer to a record.
    public typealias Reference = CKReference

    /// Which of the schema's types it has.
    public let recordType: CKRecord.RecordType
    /// Its name, unique in its zone; it never changes.
    public let recordID: CKRecord.ID
    private let state: Mutex<RecordState>

    /// A new record, which exists on the server once it is saved.
    public convenience init(recordType: CKRecord.RecordType, recordID: CKRecord.ID = CKRecord.ID()) {
        self.init(type: recordType, id: recordID, state: RecordState())
    }

    /// A new record with a random name in a zone.
    @available(*, deprecated, message: "Use init(recordType:recordID:)")
    public convenience init(recordType: CKRecord.RecordType, zoneID: CKRecordZone.ID) {
        self.init(recordType: recordType, recordID: CKRecord.ID(zoneID: zoneID))
    }

    /// A record in a state of its life.
    init(type: RecordType, id: ID, state: RecordState) {
        recordType = type
        recordID = id
        self.state = Mutex(state)
    }

    /// The record of an archive, whole or of its system fields only: see `encodeSystemFields(with:)`. Nil where the
    /// archive holds none.
    public required init?(coder: NSCoder) {
        guard let archive = ArchivedRecord(coder: coder) else { return nil }
        recordType = archive.type
        recordID = archive.id
        state = Mutex(archive.state)
    }

    /// The state at this moment.
    final var current: RecordState { state.withLock { $0 } }

    /// Changes the state as one step.
    final func update(_ change: (inout RecordState) -> Void) { state.withLock { change(&$0) } }

    // MARK: What the server says

    /// When the record was first saved; nil before.
    public var creationDate: Date? { system.created?.date }
    /// When the record was last saved; nil before.
    public var modificationDate: Date? { system.modified?.date }
    /// Who saved the record first; nil before.
    public var creatorUserRecordID: CKRecord.ID? { system.created?.user }
    /// Who saved the record last; nil before.
    public var lastModifiedUserRecordID: CKRecord.ID? { system.modified?.user }
    /// The version that the server had when the record was fetched or saved; nil for one that never was. A save fails
    /// with `serverRecordChanged` where the server has another by then.
    public var recordChangeTag: String? { system.changeTag }
    /// The share that the record is the root of.
    public var share: CKRecord.Reference? { system.share }

    /// The record that this one belongs to when hierarchies are shared. Whatever action a reference has, it is kept
    /// with `none`.
    public var parent: CKRecord.Reference? {
        get { system.parent }
        set { setParent(newValue?.recordID) }
    }

    /// Makes a record the parent, or none.
    public func setParent(_ parentRecord: CKRecord?) { setParent(parentRecord?.recordID) }

    /// Makes a record the parent by its ID, or none.
    public func setParent(_ parentRecordID: CKRecord.ID?) {
        let parent = parentRecordID.map { CKReference(recordID: $0, action: .none) }
        update { $0.setParent(parent) }
    }

    private var system: SystemFields { current.system }

    // MARK: NSObject

    /// A record of its own with the same type, ID, values and unsaved edits.
    public func copy(with zone: NSZone? = nil) -> Any {
        CKRecord(type: recordType, id: recordID, state: current)
    }

    /// Type, ID, tag and names of fields; no values, which may be anybody's secrets and end up in logs.
    public override var description: String {
        let copy = current
        let place = "\(recordID.recordName):(\(recordID.zoneID.zoneName):\(recordID.zoneID.ownerName))"
        let tag = copy.system.changeTag ?? "none"
        return "<\(Self.self): recordType=\(recordType), recordID=\(place), recordChangeTag=\(tag), "
            + "keys=\(copy.values.keys.sorted())>"
    }

    public override var debugDescription: String { description }

    // MARK: Coding

    public class var supportsSecureCoding: Bool { true }

    /// Archives the whole record: values and unsaved edits too.
    public func encode(with coder: NSCoder) {
        archived.encode(with: coder, includingValues: true)
    }

    /// Archives type, ID, tag, dates, users, parent and share: no values and no edits. A record made of it by
    /// `init(coder:)` takes the values an app keeps itself and is then saved as a change of the version it names.
    public func encodeSystemFields(with coder: NSCoder) {
        archived.encode(with: coder, includingValues: false)
    }

    private var archived: ArchivedRecord {
        ArchivedRecord(type: recordType, id: recordID, state: current)
    }
}
