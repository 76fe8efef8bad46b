public import Foundation

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
