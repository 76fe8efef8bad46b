/// The fields of a record, sorted by name in byte order; no name occurs twice and no value is null.
package struct Fields: Hashable, Sendable {
    package struct Field: Hashable, Sendable {
        package var name: String
        package var value: FieldValue
        package init(name: String, value: FieldValue) {
            self.name = name
            self.value = value
        }
    }

    package private(set) var all: [Field]

    package init() { all = [] }

    /// Sorts the fields; of two with one name the later wins.
    package init(_ fields: [Field]) {
        all = []
        all.reserveCapacity(fields.count)
        for field in fields { self[field.name] = field.value }
    }

    /// Fields that are sorted by name, no name twice, which the caller has made sure of.
    init(sorted fields: [Field]) { all = fields }

    package subscript(name: String) -> FieldValue? {
        get {
            let position = lowerBound(name)
            return isHere(name, position) ? all[position].value : nil
        }
        set {
            let position = lowerBound(name)
            switch (newValue, isHere(name, position)) {
            case (let value?, true): all[position].value = value
            case (let value?, false): all.insert(Field(name: name, value: value), at: position)
            case (nil, true): all.remove(at: position)
            case (nil, false): break
            }
        }
    }

    /// Names and values together, in bytes: what the limit of 1 MB is held against.
    package var sizeBytes: Int { all.reduce(0) { $0 + $1.name.utf8.count + $1.value.sizeBytes } }

    /// Whether the field at the lower bound of a name has that name.
    private func isHere(_ name: String, _ position: Int) -> Bool {
        position < all.count && !name.precedes(all[position].name)
    }

    private func lowerBound(_ name: String) -> Int {
        var low = 0
        var high = all.count
        while low < high {
            let middle = (low + high) / 2
            if all[middle].name.precedes(name) { low = middle + 1 } else { high = middle }
        }
        return low
    }
}

/// Who did something to a record, and when.
package struct Stamp: Hashable, Sendable {
    /// Milliseconds since 1970.
    package var timestamp: Int64
    /// The user record name.
    package var user: String

    package init(timestamp: Int64, user: String) {
        self.timestamp = timestamp
        self.user = user
    }
}

/// A record as it is stored.
package struct Record: Hashable, Sendable {
    package var name: String
    package var type: String
    package var changeTag: ChangeTag
    package var created: Stamp
    package var modified: Stamp
    package var fields: Fields

    package init(
        name: String, type: String, changeTag: ChangeTag, created: Stamp, modified: Stamp, fields: Fields
    ) {
        self.name = name
        self.type = type
        self.changeTag = changeTag
        self.created = created
        self.modified = modified
        self.fields = fields
    }
}

/// The version of a record: the life of its zone and the zone's counter when the record last changed. Clients compare
/// it for equality only.
package struct ChangeTag: Hashable, Sendable, CustomStringConvertible {
    package var incarnation: UInt64
    package var sequence: UInt64

    package init(incarnation: UInt64, sequence: UInt64) {
        self.incarnation = incarnation
        self.sequence = sequence
    }

    /// Reads `description` back; nil if the text is no change tag of ours.
    package init?(_ text: String) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, let incarnation = UInt64(parts[0], radix: 36),
            let sequence = UInt64(parts[1], radix: 36)
        else { return nil }
        self.init(incarnation: incarnation, sequence: sequence)
        guard description == text else { return nil }
    }

    /// Both numbers in base 36, such as `1.2s`.
    package var description: String { String(incarnation, radix: 36) + "." + String(sequence, radix: 36) }
}
