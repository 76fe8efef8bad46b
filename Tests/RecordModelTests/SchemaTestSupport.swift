import RaftCore
import Testing

@testable import RecordModel

/// A generator whose numbers follow from its seed (SplitMix64).
struct SchemaRandom: RandomNumberGenerator {
    private var numbers: SplitMix64

    init(seed: UInt64) { numbers = SplitMix64(seed: seed) }

    mutating func next() -> UInt64 { numbers.next() }

    mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &self) < percent }
}

/// Schemas that keep every rule, made at random from few names so that two of them overlap.
enum RandomSchema {
    static func make(using random: inout SchemaRandom) -> Schema {
        let roles = ["Editor", "grant", "moderator", "zeta"].filter { _ in random.chance(50) }
        let names = ["Note", "Article", "cloudkit.share", "CD_Item", "sortable", "Users"].filter { _ in
            random.chance(60)
        }
        return Schema(roles: roles, types: names.map { type(named: $0, roles: roles, using: &random) })
    }

    private static func type(named name: String, roles: [String], using random: inout SchemaRandom) -> RecordType {
        var fields: [FieldDefinition] = []
        for name in ["title", "cloudkit.type", "CD_text", "Queryable", "list", "a", "z9_"] where random.chance(60) {
            fields.append(field(named: name, type: fieldType(using: &random), using: &random))
        }
        for system in SystemField.allCases where random.chance(40) {
            fields.append(field(named: system.rawValue, type: system.type, using: &random))
        }
        var grants: [Grant] = []
        for role in SchemaRules.systemRoles + roles where random.chance(60) {
            grants.append(
                Grant(role: role, permissions: Permissions(rawValue: UInt8.random(in: 0...7, using: &random))))
        }
        return RecordType(name: name, fields: fields, grants: grants)
    }

    private static func fieldType(using random: inout SchemaRandom) -> FieldType {
        while true {
            let scalar = ScalarType.allCases[Int.random(in: 0..<ScalarType.allCases.count, using: &random)]
            let preferred: ScalarType? = scalar == .number && random.chance(50) ? .double : nil
            let type = FieldType(
                scalar, isList: random.chance(25), isEncrypted: random.chance(25), preferred: preferred)
            if SchemaRules.problem(type: type) == nil { return type }
        }
    }

    private static func field(
        named name: String, type: FieldType, using random: inout SchemaRandom
    ) -> FieldDefinition {
        while true {
            let indexes = IndexOptions(rawValue: UInt8.random(in: 0...7, using: &random))
            if SchemaRules.problem(indexes: indexes, on: type) == nil {
                return FieldDefinition(name: name, type: type, indexes: indexes)
            }
        }
    }
}

/// What parsing the text threw; records an issue if it threw nothing.
func schemaError(_ text: String, sourceLocation: SourceLocation = #_sourceLocation) -> SchemaError? {
    do {
        _ = try SchemaParser.parse(text)
        Issue.record("accepted: \(text)", sourceLocation: sourceLocation)
        return nil
    } catch {
        return error
    }
}
