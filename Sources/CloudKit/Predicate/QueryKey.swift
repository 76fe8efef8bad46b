/// How the server calls the fields that predicates and sort descriptors name.
enum QueryKey {
    /// The properties of a record's own, by their names in the SDK.
    private static let system = [
        "recordID": "___recordID",
        "creationDate": "___createTime",
        "modificationDate": "___modTime",
        "creatorUserRecordID": "___createdBy",
        "lastModifiedUserRecordID": "___modifiedBy",
        "parent": "___parent",
        "share": "___share",
    ]

    /// The server's name of the field `key`.
    /// - Throws: the reason, where nothing can be searched or ordered by it.
    static func webName(_ key: String) throws(Reason) -> String {
        if let name = system[key] { return name }
        if system.values.contains(key) { return key }
        switch key {
        case "recordType": throw Reason(text: "the record type is the query's own, no key of a predicate")
        case "recordChangeTag": throw Reason(text: "change tags cannot be searched or sorted by")
        default: break
        }
        let isWellFormed = key.utf8.enumerated().allSatisfy { index, byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"): index > 0
            default: false
            }
        }
        guard isWellFormed, !key.isEmpty else {
            let hint = key.contains(".") ? "; fields of other records cannot be reached" : ""
            throw Reason(text: "'\(key)' is no field: a letter, then letters, digits and underscores\(hint)")
        }
        return key
    }

    /// Why a key is refused.
    struct Reason: Error {
        var text: String
    }
}
