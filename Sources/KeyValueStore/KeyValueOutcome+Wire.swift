import RecordModel
package import Wire

extension KeyValueOutcome: WireCodable {
    package func encode(to writer: inout WireWriter) {
        switch self {
        case .applied(let versions, let usage):
            writer.field(1) { nested in
                nested.field(1, signed: Int64(usage.keys))
                nested.field(2, signed: Int64(usage.bytes))
                for version in versions {
                    // An empty message stands for a write that changed nothing.
                    nested.field(3) { version?.encodeFields(to: &$0) }
                }
            }
        case .refused(let refusal):
            writer.field(2) { refusal.encode(to: &$0) }
        case .conflict(let conflicts):
            writer.field(3) { nested in
                for conflict in conflicts { nested.field(1) { conflict.encode(to: &$0) } }
            }
        }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var outcome: KeyValueOutcome?
        while let field = try reader.nextField() {
            switch field {
            case 1:
                var nested = try reader.nested()
                outcome = try Self.applied(from: &nested)
            case 2: outcome = .refused(try reader.message())
            case 3:
                var nested = try reader.nested()
                var conflicts: [KeyValueConflict] = []
                while let field = try nested.nextField() {
                    if field == 1 { conflicts.append(try nested.message()) } else { try nested.skip() }
                }
                outcome = .conflict(conflicts)
            default: try reader.skip()
            }
        }
        guard let outcome else { throw .missingField(1) }
        self = outcome
    }

    private static func applied(from reader: inout WireReader) throws(WireError) -> KeyValueOutcome {
        var usage = KeyValueUsage()
        var versions: [ChangeTag?] = []
        while let field = try reader.nextField() {
            switch field {
            case 1: usage.keys = Int(try reader.signed())
            case 2: usage.bytes = Int(try reader.signed())
            case 3:
                var nested = try reader.nested()
                versions.append(nested.isAtEnd ? nil : try ChangeTag(fieldsFrom: &nested))
            default: try reader.skip()
            }
        }
        return .applied(versions: versions, usage: usage)
    }
}

extension KeyValueConflict: WireCodable {
    package func encode(to writer: inout WireWriter) {
        writer.field(1, key)
        if let value { writer.field(2) { value.encode(to: &$0) } }
        if let version { writer.field(3) { version.encodeFields(to: &$0) } }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        self.init(key: "", value: nil, version: nil)
        while let field = try reader.nextField() {
            switch field {
            case 1: key = try reader.string()
            case 2: value = try reader.message()
            case 3:
                var nested = try reader.nested()
                version = try ChangeTag(fieldsFrom: &nested)
            default: try reader.skip()
            }
        }
    }
}

extension KeyValueRefusal: WireCodable {
    package func encode(to writer: inout WireWriter) {
        writer.field(1, UInt64(rule.rawValue))
        if let key { writer.field(2, key) }
        writer.field(3, signed: actual)
        writer.field(4, signed: max)
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var rule: Rule?
        self.init(.keys)
        while let field = try reader.nextField() {
            switch field {
            case 1: rule = Rule(rawValue: UInt8(truncatingIfNeeded: try reader.unsigned()))
            case 2: key = try reader.string()
            case 3: actual = try reader.signed()
            case 4: max = try reader.signed()
            default: try reader.skip()
            }
        }
        guard let rule else { throw .invalidValue(field: 1) }
        self.rule = rule
    }
}
