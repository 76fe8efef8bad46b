public import CoreLocation
public import Foundation

/// What to look for: the records of one type that a predicate matches, in an order.
///
/// The record type and the predicate stay as they are; the sort descriptors may be changed, from any thread. A
/// predicate that no query can be made of is no error here: the query fails with `CKError.invalidArguments` when it is
/// run, and its text says where the fault is and what CloudKit has instead.
public final class CKQuery: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
    // Unchecked: predicate and descriptors are Foundation's classes, which do not change once they are made, and the
    // list of descriptors is behind the lock.

    /// The record type to search.
    public let recordType: CKRecord.RecordType
    /// What records must match.
    public let predicate: NSPredicate
    /// What the predicate says; read once, as it does not change.
    let reading: Result<PredicateNode, PredicateReading.Fault>

    private let lock = NSLock()
    private var descriptors: [NSSortDescriptor]?

    /// - Parameters:
    ///   - recordType: one of the container's record types, not the users'.
    ///   - predicate: made of a format, of `NSPredicate(value:)`, or of `NSCompoundPredicate` of such.
    public init(recordType: CKRecord.RecordType, predicate: NSPredicate) {
        self.recordType = recordType
        self.predicate = predicate
        self.reading = PredicateReading.read(predicate)
    }

    /// The order of the results, the first descriptor before the second; nil, the default, is any order.
    public var sortDescriptors: [NSSortDescriptor]? {
        get { lock.withLock { descriptors } }
        set { lock.withLock { descriptors = newValue } }
    }

    /// The record type, the predicate as a format whose other values than texts and numbers are `%@`, and the keys of
    /// the order.
    public override var description: String {
        let format =
            switch reading {
            case .success(let node): PredicatePrinter(node).format
            case .failure(.format(let error)): "wrong format \"\(error.format)\""
            case .failure(.unreadable(let text)): text
            }
        let keys = (sortDescriptors ?? []).map { "\($0.key ?? "?") \($0.ascending ? "ascending" : "descending")" }
        let order = keys.isEmpty ? "" : "; by \(keys.joined(separator: ", "))"
        return "<CKQuery: \(recordType); \(format)\(order)>"
    }

    /// A copy of the object.
    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = CKQuery(recordType: recordType, predicate: predicate)
        copy.sortDescriptors = sortDescriptors
        return copy
    }

    // Coding.

    /// Always true.
    public static var supportsSecureCoding: Bool { true }
    /// The class's name at Apple's.
    public override class func classFallbacksForKeyedArchiver() -> [String] { ArchiveNames.fallbacks(self) }

    /// Archives the object.
    public func encode(with coder: NSCoder) {
        coder.write(recordType, "recordType")
        coder.write(PredicateArchive.text(of: reading), "predicate")
        coder.write(sortDescriptors.map(SortArchive.text), "sortDescriptors")
    }

    /// Restores an archived object; nil if the archive holds something else.
    public convenience init?(coder: NSCoder) {
        guard let recordType = coder.text("recordType"), let text = coder.text("predicate"),
            let predicate = PredicateArchive.predicate(from: text)
        else { return nil }
        self.init(recordType: recordType, predicate: predicate)
        if let text = coder.text("sortDescriptors") {
            guard let descriptors = SortArchive.descriptors(from: text) else { return nil }
            self.descriptors = descriptors
        }
    }
}

/// An order of records by the distance of a location field from a place, the nearest first.
///
/// Immutable. Records without the field come last.
public final class CKLocationSortDescriptor: NSSortDescriptor, NSSecureCoding {
    /// The place that distances are from.
    public let relativeLocation: CLLocation

    /// - Parameters:
    ///   - key: the name of a field of type LOCATION with the index SORTABLE.
    ///   - relativeLocation: the place that distances are from.
    public init(key: String, relativeLocation: CLLocation) {
        self.relativeLocation = relativeLocation
        super.init(keyPath: \SortKeyProbe[key], ascending: true)
    }

    /// Always true.
    public static var supportsSecureCoding: Bool { true }
    /// The class's name at Apple's.
    public override class func classFallbacksForKeyedArchiver() -> [String] { ArchiveNames.fallbacks(self) }

    /// Archives the object.
    public func encode(with coder: NSCoder) {
        coder.write(key ?? "", "key")
        coder.encode(relativeLocation.coordinate.latitude, forKey: "latitude")
        coder.encode(relativeLocation.coordinate.longitude, forKey: "longitude")
    }

    /// Restores an archived object; nil if the archive holds something else.
    public init?(coder: NSCoder) {
        guard let key = coder.text("key") else { return nil }
        relativeLocation = CLLocation(
            latitude: coder.decodeDouble(forKey: "latitude"), longitude: coder.decodeDouble(forKey: "longitude"))
        super.init(keyPath: \SortKeyProbe[key], ascending: true)
    }

    /// A copy of the object.
    public override func copy(with zone: NSZone? = nil) -> Any { self }
}

extension NSSortDescriptor {
    /// An order by the field `key`, as on Apple's systems; `creationDate` and the other properties of a record's own
    /// may be keys too. For queries: objects in memory cannot be compared by it.
    public convenience init(key: String?, ascending: Bool) {
        self.init(keyPath: \SortKeyProbe[key ?? ""], ascending: ascending)
    }

    /// The field that `init(key:ascending:)` was given; nil for a descriptor made of a key path.
    public var key: String? {
        guard let key = SortKeyProbe.shared[keyPath: keyPath] as? String, !key.isEmpty else { return nil }
        return key
    }
}

/// What a key path of ours leads from: Foundation's descriptor keeps a key path, and a subscript of this carries the
/// key.
struct SortKeyProbe: Sendable {
    static let shared = SortKeyProbe()

    subscript(key: String) -> String { key }
}
