import CoreLocation
import Foundation
import RecordModel

/// Predicates as text, for archives: JSON with the format and its arguments. Foundation's own class does not archive
/// what is made of a block, which formats are here.
enum PredicateArchive {
    /// The text of what a predicate says; a fault is kept, so that it shows when the query is run.
    static func text(of reading: Result<PredicateNode, PredicateReading.Fault>) -> String {
        let members: [JSONValue.Member]
        switch reading {
        case .success(let node):
            let printer = PredicatePrinter(node)
            members = [
                JSONValue.Member("format", .string(printer.format)),
                JSONValue.Member("arguments", .array(printer.arguments.map(json))),
            ]
        case .failure(.format(let error)):
            members = [
                JSONValue.Member("format", .string(error.format)),
                JSONValue.Member("expected", .string(error.expected)),
                JSONValue.Member("found", .string(error.found)),
                JSONValue.Member("position", .integer(Int64(error.position))),
            ]
        case .failure(.unreadable): members = []
        }
        return String(decoding: JSONValue.object(members).serialized(), as: UTF8.self)
    }

    /// The predicate for a text of `text(of:)`; nil for any other text.
    static func predicate(from text: String) -> NSPredicate? {
        guard let json = try? JSONParser.parse(Array(text.utf8)), case .object(let members) = json else { return nil }
        if members.isEmpty { return NSPredicate { _, _ in false } }
        guard let format = json["format"]?.string else { return nil }
        if let expected = json["expected"]?.string, let found = json["found"]?.string,
            case .integer(let position)? = json["position"]
        {
            let error = NSPredicate.FormatError(
                format: format, position: Int(position), expected: expected, found: found)
            return NSPredicate(.failure(error))
        }
        let arguments = (json["arguments"]?.array ?? []).map(value)
        guard !arguments.contains(nil), let node = try? PredicateParser.parse(format, arguments: arguments) else {
            return nil
        }
        return NSPredicate(.success(node))
    }

    private static func json(_ value: PredicateValue) -> JSONValue {
        switch value {
        case .string(let text): .object([JSONValue.Member("string", .string(text))])
        case .date(let milliseconds): .object([JSONValue.Member("date", .integer(milliseconds))])
        case .data(let data): .object([JSONValue.Member("data", .string(Base64.encode([UInt8](data))))])
        case .location(let latitude, let longitude):
            .object([JSONValue.Member("location", .array([.number(latitude), .number(longitude)]))])
        case .reference(let record, let zone, let owner):
            .object([JSONValue.Member("reference", .array([.string(record), .string(zone), .string(owner)]))])
        // The printer writes these into the format.
        case .null, .integer, .double, .list: .null
        }
    }

    private static func value(_ json: JSONValue) -> PredicateValue? {
        guard case .object(let members) = json, members.count == 1 else { return nil }
        switch (members[0].key, members[0].value) {
        case ("string", .string(let text)): return .string(text)
        case ("date", .integer(let milliseconds)): return .date(milliseconds: milliseconds)
        case ("data", .string(let text)): return Base64.decode(text).map { .data(Data($0)) }
        case ("location", .array(let numbers)):
            let degrees = numbers.compactMap(\.degrees)
            return degrees.count == 2 ? .location(latitude: degrees[0], longitude: degrees[1]) : nil
        case ("reference", .array(let names)):
            let texts = names.compactMap(\.string)
            return texts.count == 3
                ? .reference(recordName: texts[0], zoneName: texts[1], ownerName: texts[2]) : nil
        default: return nil
        }
    }
}

/// Sort descriptors as text, for archives; Foundation's own class does not archive key paths.
enum SortArchive {
    static func text(of descriptors: [NSSortDescriptor]) -> String {
        let list = descriptors.map { descriptor in
            var members = [
                JSONValue.Member("key", descriptor.key.map { .string($0) } ?? .null),
                JSONValue.Member("ascending", .bool(descriptor.ascending)),
            ]
            if let place = (descriptor as? CKLocationSortDescriptor)?.relativeLocation.coordinate {
                members.append(
                    JSONValue.Member("location", .array([.number(place.latitude), .number(place.longitude)])))
            }
            return JSONValue.object(members)
        }
        return String(decoding: JSONValue.array(list).serialized(), as: UTF8.self)
    }

    /// The descriptors for a text of `text(of:)`; nil for any other text.
    static func descriptors(from text: String) -> [NSSortDescriptor]? {
        guard let list = (try? JSONParser.parse(Array(text.utf8)))?.array else { return nil }
        var descriptors: [NSSortDescriptor] = []
        for json in list {
            guard case .bool(let ascending)? = json["ascending"] else { return nil }
            let degrees = (json["location"]?.array ?? []).compactMap(\.degrees)
            if let key = json["key"]?.string, degrees.count == 2 {
                let place = CLLocation(latitude: degrees[0], longitude: degrees[1])
                descriptors.append(CKLocationSortDescriptor(key: key, relativeLocation: place))
            } else {
                descriptors.append(NSSortDescriptor(key: json["key"]?.string, ascending: ascending))
            }
        }
        return descriptors
    }
}

extension JSONValue {
    /// A number, however it is written.
    fileprivate var degrees: Double? {
        switch self {
        case .integer(let number): Double(number)
        case .number(let number): number
        default: nil
        }
    }
}
