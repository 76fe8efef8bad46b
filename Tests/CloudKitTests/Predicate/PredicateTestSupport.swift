import CoreLocation
import Foundation
import RecordModel
import Testing

@testable import CloudKit

/// A query of the record type `Item` with a predicate of this format.
func query(_ format: String, _ arguments: [Any] = []) -> CKQuery {
    CKQuery(recordType: "Item", predicate: NSPredicate(format: format, argumentArray: arguments))
}

/// The member `filterBy` of a query's JSON; `never` where it needs no request.
func filters(_ query: CKQuery, now: Date = Date(timeIntervalSince1970: 1)) throws(CKError) -> String {
    guard let form = try query.webForm(now: now) else { return "never" }
    return form["filterBy"].map { String(decoding: $0.serialized(), as: UTF8.self) } ?? "none"
}

/// The text of the error that a query fails with.
func refusal(_ query: CKQuery) -> String? {
    do throws(CKError) {
        _ = try query.webForm()
        return nil
    } catch {
        return error.code == .invalidArguments ? error.localizedDescription : "code \(error.errorCode)"
    }
}

/// The filter with these members, as JSON without spaces.
func filter(
    _ field: String?, _ comparator: RecordModel.Comparator, _ value: String, _ type: String? = nil,
    distance: String? = nil
) -> String {
    var text = "{\"comparator\":\"\(comparator.rawValue)\""
    if let field { text += ",\"fieldName\":\"\(field)\"" }
    text += ",\"fieldValue\":{\"value\":\(value)"
    if let type { text += ",\"type\":\"\(type)\"" }
    text += "}"
    if let distance { text += ",\"distance\":\(distance)" }
    return text + "}"
}

/// The JSON of a reference to a record of the zone that is searched.
func referenceJSON(_ name: String) -> String { "{\"recordName\":\"\(name)\",\"action\":\"NONE\"}" }

/// A format with its arguments, and the filters that it becomes.
struct FilterCase: Sendable, CustomTestStringConvertible {
    var format: String
    var arguments: @Sendable () -> [Any]
    var filters: [String]

    init(_ format: String, _ arguments: @autoclosure @escaping @Sendable () -> [Any] = [], _ filters: String...) {
        self.format = format
        self.arguments = arguments
        self.filters = filters
    }

    var testDescription: String { format }
    var json: String { "[" + filters.joined(separator: ",") + "]" }
}
