extension SchemaPlan {
    /// What the schema would have once the plan was performed; the text of a schema is held to the same limits, but an
    /// additive plan joins two.
    static func excess(of changes: [SchemaChange], over current: Schema) -> [SchemaRefusal] {
        var types = current.types.count
        var fields: [String: Int] = [:]
        for type in current.types { fields[type.name] = type.fields.count(where: { !$0.isSystem }) }
        var order: [String] = []
        for change in changes {
            switch change {
            case .addType: types += 1
            case .removeType: types -= 1
            case .addField(let type, _):
                order.append(type)
                fields[type, default: 0] += 1
            case .removeField(let type, _): fields[type, default: 0] -= 1
            default: break
            }
        }
        var refusals: [SchemaRefusal] = []
        if types > Limits.typesMax {
            refusals.append(
                SchemaRefusal(
                    subject: "schema", reason: "it would have \(types) record types, at most \(Limits.typesMax)"))
        }
        var seen: Set<String> = []
        for type in order where seen.insert(type).inserted {
            guard let count = fields[type], count > Limits.fieldsMax else { continue }
            refusals.append(
                SchemaRefusal(subject: type, reason: "it would have \(count) fields, at most \(Limits.fieldsMax)"))
        }
        return refusals
    }

    /// The same for the size of the whole.
    func excessSize(over current: Schema) -> [SchemaRefusal] {
        guard let result = applied(to: current), let problem = SchemaRules.problem(sizeOf: result) else { return [] }
        return [SchemaRefusal(subject: "schema", reason: problem)]
    }
}
