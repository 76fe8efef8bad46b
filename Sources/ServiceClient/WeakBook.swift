/// Objects by a key, for as long as somebody else holds them.
struct WeakBook<Key: Hashable, Object: AnyObject> {
    private struct Entry {
        weak var object: Object?
    }

    private var entries: [Key: Entry] = [:]
    private var sweepCount = Self.sweepCountMin
    private static var sweepCountMin: Int { 64 }

    init() {}

    /// How many entries there are, those of objects that are gone among them until the next sweep.
    var count: Int { entries.count }

    /// The object of a key; nil where there was none, or nobody holds it any more.
    func object(of key: Key) -> Object? { entries[key]?.object }

    /// Notes an object. Once in a while what is gone is swept out, so that the entries are at most twice as many as there
    /// were objects at some moment.
    mutating func set(_ object: Object, for key: Key) {
        if entries.count >= sweepCount {
            entries = entries.filter { $0.value.object != nil }
            sweepCount = max(entries.count * 2, Self.sweepCountMin)
        }
        entries[key] = Entry(object: object)
    }
}
