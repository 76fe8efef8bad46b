import CoreLocation
import Foundation
import UbiquitousKeyValueStore

/// A value as a record keeps it: one form for each kind that CloudKit knows, whatever type it was set with.
enum RecordValue: Sendable, Equatable {
    case string(String)
    case data(Data)
    /// Also what a Bool is: 0 or 1.
    case int64(Int64)
    case double(Double)
    case date(Date)
    case location(CLLocation)
    case reference(CKReference)
    case asset(CKAsset)
    /// Values in order, none of them a list. Numbers of which one is fractional in type are all doubles.
    case list([RecordValue])
    /// What cannot be stored, and why. It is kept so that a save can say it: setting a value does not fail.
    case unusable(String)

    /// Takes any value; one that no field can hold becomes `unusable`.
    init(_ value: Any) {
        if let known = value as? any RecordValueSource {
            self = known.recordValue
        } else if case .array(let list)? = PlistContainer(value) {
            self.init(list: list)
        } else {
            self = .unusable("a value of type \(type(of: value))")
        }
    }

    /// A list of any values.
    init(list: [Any]) {
        // Not looked into: a list may contain itself.
        if list.contains(where: { PlistContainer.isArray($0) }) {
            self = .unusable("a list within a list")
            return
        }
        let elements = list.map { RecordValue($0) }
        for element in elements {
            if case .unusable = element {
                self = element
                return
            }
        }
        guard elements.contains(where: \.isDouble) else {
            self = .list(elements)
            return
        }
        self = .list(
            elements.map { element in
                if case .int64(let integer) = element { .double(Double(integer)) } else { element }
            })
    }

    /// An integer of any width; CloudKit keeps 64 bits and a sign.
    init(integer: some FixedWidthInteger) {
        if let value = Int64(exactly: integer) {
            self = .int64(value)
        } else {
            self = .unusable("the number \(integer), greater than \(Int64.max)")
        }
    }

    /// Why the value cannot be saved; nil for one that can.
    var fault: String? {
        switch self {
        case .unusable(let reason): reason
        case .double(let number) where !number.isFinite: "the number \(number), which is not finite"
        case .date(let date) where !date.timeIntervalSince1970.isFinite: "a date that is not finite"
        case .list(let elements):
            elements.lazy.compactMap(\.fault).first
                ?? (elements.dropFirst().allSatisfy { $0.kind == elements.first?.kind } ? nil : "a list of mixed types")
        default: nil
        }
    }

    private var isDouble: Bool { kind == .double }

    /// The case, without what it holds.
    private enum Kind { case string, data, int64, double, date, location, reference, asset, list, unusable }

    private var kind: Kind {
        switch self {
        case .string: .string
        case .data: .data
        case .int64: .int64
        case .double: .double
        case .date: .date
        case .location: .location
        case .reference: .reference
        case .asset: .asset
        case .list: .list
        case .unusable: .unusable
        }
    }
}
