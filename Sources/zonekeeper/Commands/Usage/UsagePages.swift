import RecordModel
import ServiceClient

/// Pages of a container's usage, put together to what one page would be that has room for all.
///
/// A database with many zones comes in several parts, each with the whole database's counters as they were then, some of the
/// zones, and what those came to when counted anew.
struct UsagePages {
    private var first: JSONValue?
    private var databases: [JSONValue] = []

    mutating func add(_ page: JSONValue) {
        first = first ?? page
        for part in page["databases"]?.array ?? [] {
            if let last = databases.last, Self.isSame(last, part) {
                databases[databases.count - 1] = Self.joined(last, part)
            } else {
                databases.append(part)
            }
        }
    }

    /// As the server answers, without `next`.
    var whole: JSONValue {
        (first ?? .object([])).without("next").replacing("databases", with: .array(databases))
    }

    private static func isSame(_ left: JSONValue, _ right: JSONValue) -> Bool {
        left["scope"] == right["scope"] && left["userRecordName"] == right["userRecordName"]
    }

    /// The counters stay those of the first part; a recount of later zones differs from them by what it differs from the counters
    /// that came with it.
    private static func joined(_ whole: JSONValue, _ part: JSONValue) -> JSONValue {
        let zones = (whole["zones"]?.array ?? []) + (part["zones"]?.array ?? [])
        let joined = whole.replacing("zones", with: .array(zones))
        guard let recount = whole["recount"], let more = part["recount"] else { return joined.without("recount") }
        func sum(_ key: String) -> JSONValue {
            let difference = (more.amount(key) ?? 0) &- (part.amount(key) ?? 0)
            return .integer((recount.amount(key) ?? 0) &+ difference)
        }
        let isEqual = recount["isEqual"] == .bool(true) && more["isEqual"] == .bool(true)
        return joined.replacing(
            "recount",
            with: .members(["bytes": sum("bytes"), "records": sum("records"), "isEqual": .bool(isEqual)]))
    }
}

extension JSONValue {
    /// An object with another value for a member, which is added where it is missing.
    fileprivate func replacing(_ key: String, with value: JSONValue) -> JSONValue {
        guard case .object(var members) = self else { return self }
        if let position = members.firstIndex(where: { $0.key == key }) {
            members[position].value = value
        } else {
            members.append(Member(key, value))
        }
        return .object(members)
    }

    fileprivate func without(_ key: String) -> JSONValue {
        guard case .object(let members) = self else { return self }
        return .object(members.filter { $0.key != key })
    }
}
