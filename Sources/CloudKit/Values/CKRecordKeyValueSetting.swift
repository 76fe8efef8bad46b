public import Foundation

/// What holds values under keys: a record, and its encrypted values.
public protocol CKRecordKeyValueSetting: NSObjectProtocol {
    /// The value of a key; nil where there is none.
    func object(forKey key: CKRecord.FieldKey) -> (any __CKRecordObjCValue)?
    /// Sets the value of a key; nil removes it.
    func setObject(_ object: (any __CKRecordObjCValue)?, forKey key: CKRecord.FieldKey)
    /// The value of a key; nil where there is none, and setting nil removes it.
    subscript(key: CKRecord.FieldKey) -> (any __CKRecordObjCValue)? { get set }
    /// The value of a key as one type; nil where there is none or it is of another type.
    subscript<T: CKRecordValueProtocol>(key: CKRecord.FieldKey) -> T? { get set }
    /// The keys that have a value, sorted.
    func allKeys() -> [CKRecord.FieldKey]
    /// The keys that were set or removed since the record was fetched or saved, sorted.
    func changedKeys() -> [CKRecord.FieldKey]
}

/// Goes over the values of a record, sorted by key.
public struct CKRecordKeyValueIterator: IteratorProtocol {
    /// A key and its value.
    public typealias Element = (CKRecord.FieldKey, any CKRecordValueProtocol)

    private var rest: ArraySlice<Element>

    init(_ elements: [Element]) { rest = elements[...] }

    /// The next key and value; nil after the last.
    public mutating func next() -> (CKRecord.FieldKey, any CKRecordValueProtocol)? { rest.popFirst() }
}
