/// Every caller, operation, door and scope against each other, and what ought to come of it.
enum Matrix {}

/// The rules once more, told by tables and strings: DESIGN.md section 9, `limits-quotas.md` section 6 and
/// `web-services.md`. Nothing here comes from the server, so that a fault there is not repeated here.
extension Matrix {
    /// What the rules know of a caller.
    struct Who: Sendable {
        /// A word for the user; nil is nobody, or the administrator.
        var user: String?
        var roles: [String] = []
        var isAdministrator = false
        /// The error that every request of this caller meets, whatever it asks for: the credentials are no good.
        var refusal: String?
        /// Whether it signs with a server-to-server key, which reaches public data only.
        var isKey = false
    }

    /// Role by role, which of `c`reate, `r`ead and `w`rite a type grants.
    typealias Grants = [String: String]

    /// Whether a caller may do one of `c`, `r` and `w` with a public record of a type.
    static func may(_ letter: Character, _ who: Who, _ grants: Grants, madeBy creator: String?) -> Bool {
        if who.refusal != nil { return false }
        if who.isAdministrator { return true }
        if let granted = grants["_world"], granted.contains(letter) { return true }
        guard let user = who.user else { return false }
        if let granted = grants["_icloud"], granted.contains(letter) { return true }
        if user == creator, let granted = grants["_creator"], granted.contains(letter) { return true }
        for role in who.roles {
            if let granted = grants[role], granted.contains(letter) { return true }
        }
        return false
    }

    /// One way to change a record.
    enum Deed: String, CaseIterable, Sendable {
        case createNew, createSame, createOther
        case update, updateStale, updateUntagged, updateMissing, updateOtherType, updateUntyped
        case forceUpdate, forceUpdateMissing
        case replace, replaceStale, replaceUntagged, replaceMissing
        case forceReplace, forceReplaceMissing
        case delete, deleteStale, deleteUntagged, deleteMissing
        case forceDelete, forceDeleteMissing

        /// The `operationType`.
        var operation: String {
            for word in ["forceUpdate", "forceReplace", "forceDelete", "update", "replace", "delete"]
            where rawValue.hasPrefix(word) { return word }
            return "create"
        }
        var needsRecord: Bool { self != .createNew && !rawValue.hasSuffix("Missing") }
        var isDelete: Bool { operation.lowercased().hasSuffix("delete") }
        var merges: Bool { operation.lowercased().hasSuffix("update") }
    }

    /// What is left of a record after an operation.
    enum Fate { case absent, same, merged, replaced }

    /// The codes that the answer to a deed may have; the empty one is success.
    static func codes(_ deed: Deed, _ who: Who, _ grants: Grants, madeBy creator: String?) -> Set<String> {
        if let refusal = who.refusal { return [refusal] }
        let mayWrite = may("w", who, grants, madeBy: creator)
        let mayRead = may("r", who, grants, madeBy: creator)
        // Who makes a record is its creator.
        let mayCreate = may("c", who, grants, madeBy: who.user)
        switch deed {
        case .createNew, .forceUpdateMissing, .forceReplaceMissing: return mayCreate ? [""] : ["ACCESS_DENIED"]
        case .createSame: return mayCreate ? ["EXISTS"] : ["ACCESS_DENIED"]
        // The type that it is to have is open to everybody.
        case .createOther: return ["EXISTS"]
        case .update, .replace, .delete, .forceUpdate, .forceReplace, .forceDelete:
            return mayWrite ? [""] : ["ACCESS_DENIED"]
        case .updateStale, .replaceStale, .deleteStale: return mayWrite ? ["CONFLICT"] : ["ACCESS_DENIED"]
        case .updateUntagged, .replaceUntagged, .deleteUntagged: return ["BAD_REQUEST"]
        // Callers who could not write a record of the type even if they had made it are told so, whether or not it is
        // there.
        case .updateMissing, .replaceMissing:
            return may("w", who, grants, madeBy: who.user) ? ["NOT_FOUND"] : ["ACCESS_DENIED"]
        case .deleteMissing: return ["NOT_FOUND"]
        case .forceDeleteMissing: return [""]
        case .updateOtherType: return mayWrite ? ["BAD_REQUEST"] : ["ACCESS_DENIED"]
        // What a value means is said by the record's type, which only readers can do without.
        case .updateUntyped:
            if mayWrite { return mayRead ? [""] : ["BAD_REQUEST"] }
            return mayRead ? ["ACCESS_DENIED"] : ["ACCESS_DENIED", "BAD_REQUEST"]
        }
    }

    /// What is left of the record of a deed that had one of its codes.
    static func fate(_ deed: Deed, isDone: Bool) -> Fate {
        guard isDone else { return deed.needsRecord ? .same : .absent }
        if deed.isDelete { return .absent }
        return deed.needsRecord && deed.merges ? .merged : .replaced
    }

    /// Whether the answer to a deed shows the record as it is on the server: to readers only.
    static func showsRecord(_ deed: Deed, _ code: String, mayRead: Bool) -> Bool {
        guard mayRead, deed.needsRecord else { return false }
        return code == "CONFLICT" || code == "EXISTS" || code == "" && deed.merges
    }

    /// The error of a whole request for public data; nil where it is looked at.
    static func publicRefusal(_ who: Who, needsUser: Bool = false) -> String? {
        if let refusal = who.refusal { return refusal }
        guard needsUser else { return nil }
        if who.isAdministrator { return "ACCESS_DENIED" }
        return who.user == nil ? "AUTHENTICATION_REQUIRED" : nil
    }

    /// The error of a whole request for private data or preferences; nil where it is looked at.
    static func privateRefusal(_ who: Who) -> String? {
        if let refusal = who.refusal { return refusal }
        if who.isAdministrator || who.isKey { return "ACCESS_DENIED" }
        return who.user == nil ? "AUTHENTICATION_REQUIRED" : nil
    }
}
