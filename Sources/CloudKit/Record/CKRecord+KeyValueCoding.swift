import Foundation

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
}
