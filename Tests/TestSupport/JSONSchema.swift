package import RecordModel

/// The part of JSON Schema that the OpenAPI document uses: `$ref`, `type`, `enum`, `properties`, `required`,
/// `additionalProperties`, `items`, `minItems`, `maxItems`, `minimum`, `maximum`, `anyOf`, `oneOf`.
///
/// A keyword that it does not know is a fault of the schema, not passed over.
package struct JSONSchema {
    private let root: JSONValue

    /// - Parameter root: the document in which `$ref`s are looked up.
    package init(root: JSONValue) { self.root = root }

    private static let annotations: Set<String> = ["description", "format", "examples", "title", "deprecated"]
    private static let keywords: Set<String> = [
        "$ref", "type", "enum", "properties", "required", "additionalProperties", "items", "minItems", "maxItems",
        "minimum", "maximum", "anyOf", "oneOf",
    ]

    /// What is wrong with a value, each fault with its place; empty where the value is of the schema's shape.
    package func faults(of value: JSONValue, against schema: JSONValue, at path: String = "$") -> [String] {
        guard case .object(let members) = schema else {
            if case .bool(let isAllowed) = schema { return isAllowed ? [] : ["\(path): is not expected"] }
            return ["\(path): the schema is no object"]
        }
        var faults: [String] = []
        for member in members where !Self.annotations.contains(member.key) {
            guard Self.keywords.contains(member.key) else {
                faults.append("\(path): the schema's keyword '\(member.key)' is not known")
                continue
            }
            faults += check(value, member, schema, path)
        }
        return faults
    }

    private func check(
        _ value: JSONValue, _ keyword: JSONValue.Member, _ schema: JSONValue, _ path: String
    ) -> [String] {
        switch keyword.key {
        case "$ref":
            guard let target = resolve(keyword.value.string ?? "") else {
                return ["\(path): nothing at \(keyword.value.string ?? "")"]
            }
            return faults(of: value, against: target, at: path)
        case "type": return checkType(value, keyword.value, path)
        case "enum":
            return keyword.value.array?.contains(value) == true
                ? [] : ["\(path): \(Self.text(value)) is none of \(Self.text(keyword.value))"]
        case "required": return checkRequired(value, keyword.value, path)
        case "properties": return checkProperties(value, keyword.value, path)
        case "additionalProperties": return checkOthers(value, keyword.value, schema, path)
        case "items":
            return (value.array ?? []).enumerated().flatMap {
                faults(of: $1, against: keyword.value, at: "\(path)[\($0)]")
            }
        case "minItems", "maxItems", "minimum", "maximum": return checkBounds(value, keyword, path)
        default: return checkChoice(value, keyword, path)
        }
    }

    private func checkType(_ value: JSONValue, _ type: JSONValue, _ path: String) -> [String] {
        let wanted = type.array?.compactMap(\.string) ?? [type.string ?? ""]
        let names: [String] =
            switch value {
            case .null: ["null"]
            case .bool: ["boolean"]
            case .integer: ["integer", "number"]
            case .number(let number): number == number.rounded() ? ["integer", "number"] : ["number"]
            case .string: ["string"]
            case .array: ["array"]
            case .object: ["object"]
            }
        return names.contains(where: wanted.contains)
            ? [] : ["\(path): \(wanted.joined(separator: " or ")) expected, found \(value.kind)"]
    }

    private func checkRequired(_ value: JSONValue, _ names: JSONValue, _ path: String) -> [String] {
        guard case .object = value else { return [] }
        return (names.array ?? []).compactMap(\.string).filter { value[$0] == nil }.map { "\(path).\($0): is missing" }
    }

    private func checkProperties(_ value: JSONValue, _ properties: JSONValue, _ path: String) -> [String] {
        guard case .object(let members) = value else { return [] }
        return members.flatMap { member in
            properties[member.key].map { faults(of: member.value, against: $0, at: "\(path).\(member.key)") } ?? []
        }
    }

    private func checkOthers(
        _ value: JSONValue, _ others: JSONValue, _ schema: JSONValue, _ path: String
    ) -> [String] {
        guard case .object(let members) = value else { return [] }
        return members.filter { schema["properties"]?[$0.key] == nil }.flatMap {
            faults(of: $0.value, against: others, at: "\(path).\($0.key)")
        }
    }

    private func checkBounds(_ value: JSONValue, _ keyword: JSONValue.Member, _ path: String) -> [String] {
        guard case .integer(let bound) = keyword.value else { return ["\(path): \(keyword.key) is no number"] }
        let isKept: Bool
        switch (keyword.key, value) {
        case ("minItems", .array(let members)): isKept = members.count >= bound
        case ("maxItems", .array(let members)): isKept = members.count <= bound
        case ("minimum", .integer(let number)): isKept = number >= bound
        case ("maximum", .integer(let number)): isKept = number <= bound
        case ("minimum", .number(let number)): isKept = number >= Double(bound)
        case ("maximum", .number(let number)): isKept = number <= Double(bound)
        default: isKept = true
        }
        return isKept ? [] : ["\(path): \(keyword.key) is \(bound)"]
    }

    private func checkChoice(_ value: JSONValue, _ keyword: JSONValue.Member, _ path: String) -> [String] {
        let tried = (keyword.value.array ?? []).map { faults(of: value, against: $0, at: path) }
        let fitting = tried.filter(\.isEmpty).count
        if keyword.key == "anyOf" ? fitting > 0 : fitting == 1 { return [] }
        let closest = tried.min { $0.count < $1.count } ?? []
        return ["\(path): \(fitting) of \(tried.count) shapes fit \(Self.text(value).prefix(300))"] + closest
    }

    /// What a `$ref` such as `#/components/schemas/Record` points at.
    package func resolve(_ reference: String) -> JSONValue? {
        guard reference.hasPrefix("#/") else { return nil }
        var value: JSONValue? = root
        for step in reference.dropFirst(2).split(separator: "/") {
            let key = String(step).replacing("~1", with: "/").replacing("~0", with: "~")
            value = value?[key]
        }
        return value
    }

    /// The `$ref`s of the document that point at nothing.
    package func danglingReferences() -> [String] { dangling(in: root) }

    private func dangling(in value: JSONValue) -> [String] {
        switch value {
        case .array(let members): members.flatMap { dangling(in: $0) }
        case .object(let members):
            members.flatMap { member -> [String] in
                if member.key == "$ref", let target = member.value.string {
                    return resolve(target) == nil ? [target] : []
                }
                return dangling(in: member.value)
            }
        default: []
        }
    }

    private static func text(_ value: JSONValue) -> String { String(decoding: value.serialized(), as: UTF8.self) }
}
