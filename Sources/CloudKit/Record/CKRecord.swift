public import Foundation
import Synchronization

// @unchecked: what changes is `state`, behind its lock; all else is immutable and Sendable. Not final for CKShare.
/// A record: values under keys, in a zone, of a record type, as CloudKit has them.
///
/// Any task may read and set it at any time: its state is behind a lock. Records are equal only if they are the same
/// instance. A save changes the instance that was passed to it: values and tag become the server's, edits made while it
/// was under way are kept and stay in `changedKeys()`.
///
/// What a field may hold is checked when the record is saved, by the SDK and the server, not when it is set.
public class CKRecord: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
    /// The name of a record type.
    public typealias RecordType = String
    /// The name of a field.
    public typealias FieldKey = String
    /// The id of a record, with that of its zone.
    public typealias ID = CKRecordID
    /// A pointer to a record.
    public typealias Reference = CKReference

    /// Its record type in the schema.
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

    init(type: RecordType, id: ID, state: RecordState) {
        recordType = type
        recordID = id
        self.state = Mutex(state)
    }

    /// Restores a record from an archive of the whole record or of its system fields (`encodeSystemFields(with:)`); nil
    /// if the archive holds no record.
    public required init?(coder: NSCoder) {
        guard let type = coder.text("RecordType"), let id = coder.object(CKRecordID.self, "RecordID") else {
            return nil
        }
        recordType = type
        recordID = id
        state = Mutex(RecordState(coder: coder))
    }

    final var current: RecordState { state.withLock { $0 } }

    final func update(_ change: (inout RecordState) -> Void) { state.withLock { change(&$0) } }

    // MARK: What the server says

    /// When the record was first saved; nil before.
    public var creationDate: Date? { system.created?.date }
    /// When the record was last saved; nil before.
    public var modificationDate: Date? { system.modified?.date }
    /// The user who saved the record first; nil before.
    public var creatorUserRecordID: CKRecord.ID? { system.created?.user }
    /// The user who saved the record last; nil before.
    public var lastModifiedUserRecordID: CKRecord.ID? { system.modified?.user }
    /// The version that the server had when the record was fetched or saved; nil for one that never was. A save fails
    /// with `serverRecordChanged` if the server has another one by then.
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

    /// A new record with the same type, ID, values and unsaved edits.
    public func copy(with zone: NSZone? = nil) -> Any {
        CKRecord(type: recordType, id: recordID, state: current)
    }

    /// Type, ID, tag and names of fields. No values, which may be secret and could end up in logs.
    public override var description: String {
        let copy = current
        let place = "\(recordID.recordName):(\(recordID.zoneID.zoneName):\(recordID.zoneID.ownerName))"
        let tag = copy.system.changeTag ?? "none"
        return "<\(Self.self): recordType=\(recordType), recordID=\(place), recordChangeTag=\(tag), "
            + "keys=\(copy.values.keys.sorted())>"
    }

    /// The text for logs.
    public override var debugDescription: String { description }

    // MARK: Coding

    /// Always true.
    public class var supportsSecureCoding: Bool { true }
    /// The class's name at Apple's.
    public override class func classFallbacksForKeyedArchiver() -> [String] { ArchiveNames.fallbacks(self) }

    /// Archives the whole record: values and unsaved edits too.
    public func encode(with coder: NSCoder) { encode(with: coder, includingValues: true) }

    /// Archives type, ID, tag, dates, users, parent and share, but no values and no edits. An app can set its own
    /// values on a record restored by `init(coder:)`, and save it as a change of the archived version.
    public func encodeSystemFields(with coder: NSCoder) { encode(with: coder, includingValues: false) }

    private func encode(with coder: NSCoder, includingValues: Bool) {
        coder.write(recordType, "RecordType")
        coder.write(recordID, "RecordID")
        current.encode(with: coder, includingValues: includingValues)
    }
}

extension CKRecord: CKRecordKeyValueSetting {
    /// The value of a key; nil if there is none. Numbers come as NSNumber, which casts to every type of number and
    /// to Bool.
    public func object(forKey key: CKRecord.FieldKey) -> (any __CKRecordObjCValue)? {
        value(forKey: key, isEncrypted: false)?.object
    }

    /// Sets the value of a key; nil removes it. The key counts as changed even where the value is the one it had.
    public func setObject(_ object: (any __CKRecordObjCValue)?, forKey key: CKRecord.FieldKey) {
        set(object.map { RecordValue($0) }, forKey: key, isEncrypted: false)
    }

    /// The value of a key; nil if there is none, and setting nil removes it.
    public subscript(key: CKRecord.FieldKey) -> (any __CKRecordObjCValue)? {
        get { object(forKey: key) }
        set { setObject(newValue, forKey: key) }
    }

    /// The value of a key as one type; nil if there is none or it is of another type, where Apple's framework
    /// traps.
    public subscript<T: CKRecordValueProtocol>(key: CKRecord.FieldKey) -> T? {
        get { value(forKey: key, isEncrypted: false)?.read(as: T.self) }
        set { setObject(newValue, forKey: key) }
    }

    /// The keys that have a value that is not encrypted, sorted.
    public func allKeys() -> [CKRecord.FieldKey] { keys(areEncrypted: false) }

    /// The keys that were set or removed since the record was fetched or saved, encrypted or not, sorted.
    public func changedKeys() -> [CKRecord.FieldKey] { current.changedKeys }

    /// The words of all text fields, sorted, each once.
    public func allTokens() -> [String] {
        let state = current
        let values = state.values.filter { !state.encryptedKeys.contains($0.key) }.values
        var tokens: Set<String> = []
        for case .string(let text) in values {
            tokens.formUnion(text.split { !$0.isLetter && !$0.isNumber }.map(String.init))
        }
        return tokens.sorted()
    }

    /// The values that are kept encrypted, under keys of their own. Neither references nor assets can be among them,
    /// nor values of the public database, and no query can ask for them: the server refuses what it cannot keep so.
    public var encryptedValues: any CKRecordKeyValueSetting & Sendable { EncryptedValues(record: self) }

    // MARK: Both forms

    func value(forKey key: String, isEncrypted: Bool) -> RecordValue? {
        current.value(forKey: key, isEncrypted: isEncrypted)
    }

    func set(_ value: RecordValue?, forKey key: String, isEncrypted: Bool) {
        update { $0.set(value, forKey: key, isEncrypted: isEncrypted) }
    }

    func keys(areEncrypted: Bool) -> [String] {
        let state = current
        return state.values.keys.filter { state.encryptedKeys.contains($0) == areEncrypted }.sorted()
    }
}

extension CKRecord: Sequence {
    /// Goes over keys and values that are not encrypted, sorted by key, as they are now.
    public func makeIterator() -> CKRecordKeyValueIterator {
        let state = current
        let plain = state.values.filter { !state.encryptedKeys.contains($0.key) }.sorted { $0.key < $1.key }
        return CKRecordKeyValueIterator(plain.compactMap { key, value in value.object.map { (key, $0) } })
    }
}

/// The encrypted values of a record, seen through the record: it keeps the record and no values.
final class EncryptedValues: NSObject, CKRecordKeyValueSetting, Sendable {
    private let record: CKRecord

    init(record: CKRecord) { self.record = record }

    func object(forKey key: CKRecord.FieldKey) -> (any __CKRecordObjCValue)? {
        record.value(forKey: key, isEncrypted: true)?.object
    }

    func setObject(_ object: (any __CKRecordObjCValue)?, forKey key: CKRecord.FieldKey) {
        record.set(object.map { RecordValue($0) }, forKey: key, isEncrypted: true)
    }

    subscript(key: CKRecord.FieldKey) -> (any __CKRecordObjCValue)? {
        get { object(forKey: key) }
        set { setObject(newValue, forKey: key) }
    }

    subscript<T: CKRecordValueProtocol>(key: CKRecord.FieldKey) -> T? {
        get { record.value(forKey: key, isEncrypted: true)?.read(as: T.self) }
        set { setObject(newValue, forKey: key) }
    }

    func allKeys() -> [CKRecord.FieldKey] { record.keys(areEncrypted: true) }

    func changedKeys() -> [CKRecord.FieldKey] {
        let state = record.current
        return state.changedKeys.filter { state.isEncrypted(changed: $0) }
    }
}

/// What key-value coding does for records in Objective-C. Linux has no such thing for classes in general.
extension CKRecord {
    /// The value of a field, or where it has none the property of that name (`recordID`, `creationDate` and so on); nil
    /// for neither.
    public func value(forKey key: String) -> Any? {
        object(forKey: key) ?? property(key)
    }

    /// Sets a field; nil removes it. A value that no field can hold is kept aside, and the save fails and names it.
    public func setValue(_ value: Any?, forKey key: String) {
        set(value.map { RecordValue($0) }, forKey: key, isEncrypted: false)
    }

    /// Sets several fields; an NSNull removes one.
    public func setValuesForKeys(_ keyedValues: [String: Any]) {
        for (key, value) in keyedValues { setValue(value is NSNull ? nil : value, forKey: key) }
    }

    /// The values of several fields or properties, with an NSNull for each that has none.
    public func dictionaryWithValues(forKeys keys: [String]) -> [String: Any] {
        Dictionary(keys.map { ($0, value(forKey: $0) ?? NSNull()) }) { first, _ in first }
    }

    private func property(_ key: String) -> Any? {
        switch key {
        case "recordID": recordID
        case "recordType": recordType
        case "creationDate": creationDate
        case "creatorUserRecordID": creatorUserRecordID
        case "modificationDate": modificationDate
        case "lastModifiedUserRecordID": lastModifiedUserRecordID
        case "recordChangeTag": recordChangeTag
        case "parent": parent
        case "share": share
        default: nil
        }
    }

    /// The record types that every schema has.
    public enum SystemType {
        /// The type of the records that stand for users.
        public static let userRecord: CKRecord.RecordType = "Users"
        /// The type of shares.
        public static let share: CKRecord.RecordType = "cloudkit.share"
    }

    /// The names by which queries speak of what every record has.
    public enum SystemFieldKey {
        /// The record's ID.
        public static let recordID: CKRecord.FieldKey = "recordID"
        /// When it was first saved.
        public static let creationDate: CKRecord.FieldKey = "creationDate"
        /// Who saved it first.
        public static let creatorUserRecordID: CKRecord.FieldKey = "creatorUserRecordID"
        /// When it was last saved.
        public static let modificationDate: CKRecord.FieldKey = "modificationDate"
        /// Who saved it last.
        public static let lastModifiedUserRecordID: CKRecord.FieldKey = "lastModifiedUserRecordID"
        /// Its parent in a hierarchy.
        public static let parent: CKRecord.FieldKey = "parent"
        /// The share it is the root of.
        public static let share: CKRecord.FieldKey = "share"
    }
}

/// What the service knows of records beyond what apps see: how they come from the server, go to it and take over its
/// answer.
extension CKRecord {
    convenience init(
        id: CKRecord.ID, type: RecordType, system: SystemFields, values: [String: RecordValue],
        encryptedKeys: Set<String> = []
    ) {
        let server = ServerState(system: system, values: values, encryptedKeys: encryptedKeys)
        self.init(type: type, id: id, state: RecordState(server))
    }

    func snapshot() -> RecordSnapshot {
        RecordSnapshot(id: recordID, type: recordType, state: current)
    }

    /// Takes over what the server has after `sent` was saved. A key that was edited since the snapshot was taken
    /// keeps its value and stays changed; every other key has the server's value and is no longer changed.
    /// - Parameter part: what of the snapshot went out; nil where the server tells all that it has.
    func saved(as server: ServerState, sent: RecordSnapshot, part: SentPart? = nil) {
        update { $0.saved(as: server, sent: sent.state, part: part) }
    }

    /// The record as last known from the server, for a conflict; nil where it never came from there. A record restored
    /// from its system fields has an ancestor without values, because they were not stored.
    func ancestor() -> CKRecord? {
        guard let base = current.base else { return nil }
        return CKRecord(type: recordType, id: recordID, state: RecordState(base))
    }
}

/// A record at a moment: what a save sends.
struct RecordSnapshot: Sendable {
    let id: CKRecord.ID
    let type: CKRecord.RecordType
    fileprivate var state: RecordState

    var system: SystemFields { state.system }
    /// All values, encrypted ones too.
    var values: [String: RecordValue] { state.values }
    var encryptedKeys: Set<String> { state.encryptedKeys }
    /// The keys that were set or removed since the record was fetched or saved, sorted. One without a value was
    /// removed.
    var changedKeys: [String] { state.changedKeys }
    var isParentChanged: Bool { state.parentEdit != nil }
    var base: ServerState? { state.base }

    mutating func replaceAssets(_ other: (CKAsset, String, Int) -> CKAsset?) { state.replaceAssets(other) }

    /// Fails with `invalidArguments` where a value cannot be stored, and names the field.
    func validate() throws(CKError) {
        guard values.contains(where: { fault(of: $0.value, $0.key) != nil }) else { return }
        for key in values.keys.sorted() {
            guard let value = values[key], let fault = fault(of: value, key) else { continue }
            throw CKError(
                .invalidArguments,
                reason: "the field \"\(key)\" of the record \"\(id.recordName)\" was set to \(fault): a field holds "
                    + "text, a number, a date, bytes, a place, a reference, an asset, or a list of one of these")
        }
    }

    private func fault(of value: RecordValue, _ key: String) -> String? {
        if let fault = value.fault { return fault }
        return value.hasAsset && encryptedKeys.contains(key) ? "an asset, which cannot be among encrypted values" : nil
    }
}
