import Foundation

extension CKRecord: CKRecordKeyValueSetting {
    /// The value of a key; nil where there is none. Numbers come as NSNumber, which casts to every type of number and
    /// to Bool.
    public func object(forKey key: CKRecord.FieldKey) -> (any __CKRecordObjCValue)? {
        value(forKey: key, isEncrypted: false)?.object
    }

    /// Sets the value of a key; nil removes it. The key counts as changed even where the value is the one it had.
    public func setObject(_ object: (any __CKRecordObjCValue)?, forKey key: CKRecord.FieldKey) {
        set(object.map { RecordValue($0) }, forKey: key, isEncrypted: false)
    }

    /// The value of a key; nil where there is none, and setting nil removes it.
    public subscript(key: CKRecord.FieldKey) -> (any __CKRecordObjCValue)? {
        get { object(forKey: key) }
        set { setObject(newValue, forKey: key) }
    }

    /// The value of a key as one type; nil where there is none or it is of another type, where Apple's framework
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
