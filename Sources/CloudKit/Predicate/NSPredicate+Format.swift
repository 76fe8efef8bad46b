public import CoreLocation
public import Foundation
import RecordModel
import ServiceClient

extension NSPredicate {
    /// A predicate from a format, as on Apple's systems: `NSPredicate(format: "title BEGINSWITH %@", "Swift")`.
    ///
    /// `%@` stands for a value, `%K` for the name of a field, `%d`, `%f` and their like for numbers. Values are
    /// strings, numbers, truth values, `Date`, `Data`, `CLLocation`, `CKRecord`, its `ID` and `Reference`, and arrays
    /// of these, in Swift's or Foundation's types; an optional without a value is `NULL`.
    ///
    /// A format that cannot be read raises an exception on Apple's systems. Here `formatError` says what is wrong, and
    /// a query with the predicate fails with `CKError.invalidArguments`. The predicate is for queries: evaluated on an
    /// object in memory, it stops the program.
    public convenience init(format predicateFormat: String, _ args: Any?...) {
        self.init(reading: predicateFormat, args)
    }

    /// A predicate from a format with its arguments in an array; see `init(format:_:)`.
    public convenience init(format predicateFormat: String, argumentArray arguments: [Any]?) {
        self.init(reading: predicateFormat, arguments ?? [])
    }

    private convenience init(reading format: String, _ arguments: [Any?]) {
        let result = Result { () throws(FormatError) in try PredicateParser.parse(format, arguments: arguments) }
        self.init(result)
    }

    /// A predicate that is known already; a fault makes one that no query takes.
    convenience init(_ result: Result<PredicateNode, FormatError>) {
        // Foundation's class has no room for the form, and a subclass cannot come out of `NSPredicate(format:)`. So the
        // block keeps it, and returns it to a probe.
        self.init { object, _ in
            guard let probe = object as? PredicateProbe else {
                preconditionFailure(
                    "A predicate made of a format is for queries of CloudKit; on this platform it cannot be evaluated "
                        + "on an object in memory.")
            }
            probe.result = result
            return false
        }
    }

    /// What is wrong with the format that this was made of; nil where nothing is, and for predicates without a format.
    /// Of a compound predicate: the first fault in it.
    public var formatError: FormatError? {
        guard case .failure(.format(let error)) = PredicateReading.read(self) else { return nil }
        return error
    }
}

/// What a predicate of ours answers with its form.
private final class PredicateProbe {
    var result: Result<PredicateNode, NSPredicate.FormatError>?
}

/// The way from Foundation's objects to what they say.
///
/// A block that is not of ours cannot be told apart without calling it: it is called once, with an object that it does
/// not know.
enum PredicateReading {
    enum Fault: Error {
        case format(NSPredicate.FormatError)
        /// In words that follow "Invalid predicate: ".
        case unreadable(String)
    }

    static func read(_ predicate: NSPredicate) -> Result<PredicateNode, Fault> {
        Result { () throws(Fault) in try node(predicate, depth: 0) }
    }

    private static func node(_ predicate: NSPredicate, depth: Int) throws(Fault) -> PredicateNode {
        guard depth < PredicateLimits.depthMax else {
            throw .unreadable("compound predicates are nested more than \(PredicateLimits.depthMax) deep")
        }
        if let compound = predicate as? NSCompoundPredicate { return try node(compound: compound, depth: depth) }
        for flag in [true, false] where predicate.isEqual(NSPredicate(value: flag)) { return .constant(flag) }
        let probe = PredicateProbe()
        _ = predicate.evaluate(with: probe)
        switch probe.result {
        case .success(let node): return node
        case .failure(let error): throw .format(error)
        case nil:
            throw .unreadable(
                "it is made of a block, which no server can run; make it of a format, NSPredicate(format:)")
        }
    }

    private static func node(compound: NSCompoundPredicate, depth: Int) throws(Fault) -> PredicateNode {
        var members: [PredicateNode] = []
        for member in compound.subpredicates { members.append(try node(member, depth: depth + 1)) }
        switch compound.compoundPredicateType {
        case .not:
            guard members.count == 1 else { throw .unreadable("NOT has \(members.count) predicates, not one") }
            return .not(members[0], .none)
        case .and:
            if members.count < 2 { return members.first ?? .constant(true) }
            return .and(members)
        case .or:
            if members.count < 2 { return members.first ?? .constant(false) }
            return .or(members, .none)
        }
    }
}

extension NSPredicate {
    /// Why a predicate format cannot be parsed. The format is at fault, so a retry does not help.
    ///
    /// Apple's systems raise an exception in the initialiser. Here the predicate keeps the error, `formatError` shows
    /// it, and a query with the predicate fails with `CKError.invalidArguments`.
    public struct FormatError: Error, Hashable, Sendable, CustomStringConvertible {
        /// The text, as the caller gave it.
        public let format: String
        /// Where the fault is, in characters from the start of `format`.
        public let position: Int
        /// What would have been right there.
        public let expected: String
        /// What is there.
        public let found: String

        /// What is wrong, and the format with a caret under the place.
        public var description: String {
            let excerpt = PredicateExcerpt.lines(format, position: position)
            return "Unable to parse the format string: character \(position): expected \(expected), found \(found)"
                + (excerpt.isEmpty ? "" : "\n" + excerpt)
        }
    }
}

/// The lines that show where in a format a fault is.
enum PredicateExcerpt {
    /// Characters of a format that a message shows on either side of a place.
    private static let reachMax = 60

    /// The format around a place on one line, and a caret under it; empty where there is no format.
    static func lines(_ format: String, position: Int) -> String {
        guard !format.isEmpty else { return "" }
        let head = format.prefix(position)
        let before = head.suffix(reachMax)
        let after = format.dropFirst(position).prefix(reachMax)
        var line = before.startIndex > head.startIndex ? "…" : ""
        line += plain(before)
        let caret = String(repeating: " ", count: line.count) + "^"
        line += plain(after)
        if after.endIndex < format.endIndex { line += "…" }
        return line + "\n" + caret
    }

    private static func plain(_ text: Substring) -> String {
        String(text.map { $0.unicodeScalars.contains { $0.value < 0x20 } ? " " : $0 })
    }
}

// On Apple's systems every object is a `CVarArg`, and code for them writes `date as CVarArg` where a format takes
// arguments. Foundation here gives that to strings alone; these are the other types that predicate formats take.
//
// In a format of C, `String(format: "%@", date as NSDate)`, they print their description: a pointer to the object
// itself, which Apple's systems pass, is read by Foundation here as a structure that it is not.
//
// Swift's arrays are left out: of two overloads, `f(_: CVarArg...)` and `f(_: [CVarArg])`, a `[Int]` would choose the
// other one than without this module. They need no cast here, and `names as NSArray` is one that compiles everywhere.

extension NSDate: @retroactive CVarArg, @retroactive _CVarArgObject {}
extension NSNumber: @retroactive CVarArg, @retroactive _CVarArgObject {}
extension NSArray: @retroactive CVarArg, @retroactive _CVarArgObject {}
extension NSData: @retroactive CVarArg, @retroactive _CVarArgObject {}
extension Date: @retroactive CVarArg, @retroactive _CVarArgObject {}
extension CLLocation: CVarArg, _CVarArgObject {}
extension CKRecord: CVarArg, _CVarArgObject {}
extension CKRecord.ID: CVarArg, _CVarArgObject {}
extension CKRecord.Reference: CVarArg, _CVarArgObject {}

extension _CVarArgObject where Self: CustomStringConvertible {
    /// The description, which a format of C prints.
    public var _cVarArgObject: any CVarArg { description as NSString }

    /// Traps: a list of C's arguments takes the object above.
    public var _cVarArgEncoding: [Int] {
        preconditionFailure("A list of C's arguments takes the object in _cVarArgObject, and does not ask for this.")
    }
}

/// Predicates as text, for archives: JSON with the format and its arguments. Foundation's own class does not archive
/// what is made of a block, which formats are here.
enum PredicateArchive {
    /// The text of what a predicate says; a fault is kept, so that it shows when the query is run.
    static func text(of reading: Result<PredicateNode, PredicateReading.Fault>) -> String {
        let text: JSONValue
        switch reading {
        case .success(let node):
            let printer = PredicatePrinter(node)
            text = .members(["format": .string(printer.format), "arguments": .array(printer.arguments.map(json))])
        case .failure(.format(let error)):
            text = .members([
                "format": .string(error.format), "expected": .string(error.expected), "found": .string(error.found),
                "position": .integer(Int64(error.position)),
            ])
        case .failure(.unreadable): text = .object([])
        }
        return String(decoding: text.serialized(), as: UTF8.self)
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
        case .string(let text): .members(["string": .string(text)])
        case .date(let milliseconds): .members(["date": .integer(milliseconds)])
        case .data(let data): .members(["data": .string(Base64.encode([UInt8](data)))])
        case .location(let latitude, let longitude):
            .members(["location": .array([.number(latitude), .number(longitude)])])
        case .reference(let record, let zone, let owner):
            .members(["reference": .array([.string(record), .string(zone), .string(owner)])])
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
            let degrees = numbers.compactMap(\.double)
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
            let place = (descriptor as? CKLocationSortDescriptor)?.relativeLocation.coordinate
            return JSONValue.members([
                "key": descriptor.key.map { .string($0) } ?? .null, "ascending": .bool(descriptor.ascending),
                "location": place.map { .array([.number($0.latitude), .number($0.longitude)]) },
            ])
        }
        return String(decoding: JSONValue.array(list).serialized(), as: UTF8.self)
    }

    /// The descriptors for a text of `text(of:)`; nil for any other text.
    static func descriptors(from text: String) -> [NSSortDescriptor]? {
        guard let list = (try? JSONParser.parse(Array(text.utf8)))?.array else { return nil }
        var descriptors: [NSSortDescriptor] = []
        for json in list {
            guard case .bool(let ascending)? = json["ascending"] else { return nil }
            let degrees = (json["location"]?.array ?? []).compactMap(\.double)
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
