import RecordModel

/// The shape of a JSON value, as JSON Schema says it.
indirect enum Shape: Sendable {
    /// A text; `format` and `example` are words for readers.
    case string(format: String? = nil, example: String? = nil)
    /// A whole number of at most 64 bits.
    case integer(minimum: Int64? = nil, maximum: Int64? = nil)
    case number
    case boolean
    case null
    /// Any JSON.
    case any
    /// One text, or one of several.
    case oneOfTexts([String])
    case exactly(Bool)
    case array(Shape, maxItems: Int? = nil)
    case object(ObjectShape)
    /// A shape among the document's components.
    case reference(String)
    case anyOf([Shape])

    static let text = Shape.string()
    static let base64 = Shape.string(format: "byte")
    static let milliseconds = Shape.integer()

    static func texts(_ words: String...) -> Shape { .oneOfTexts(words) }

    /// An answer's object: it has these members and no others.
    static func answer(_ members: [ShapeMember]) -> Shape { .object(ObjectShape(members, others: .none)) }

    /// A request's object: members that the server does not know are ignored.
    static func request(_ members: [ShapeMember]) -> Shape { .object(ObjectShape(members, others: .any)) }

    /// An object whose members have names of the clients' choice.
    static func map(of shape: Shape) -> Shape { .object(ObjectShape([], others: .shaped(shape))) }

    /// The shape, or null.
    var orNull: Shape { .anyOf([self, .null]) }
}

/// A member of an object.
struct ShapeMember: Sendable {
    var name: String
    var shape: Shape
    var isRequired: Bool
    var description: String

    /// A member that is always there.
    static func need(_ name: String, _ shape: Shape, _ description: String = "") -> ShapeMember {
        ShapeMember(name: name, shape: shape, isRequired: true, description: description)
    }

    /// A member that may be missing.
    static func may(_ name: String, _ shape: Shape, _ description: String = "") -> ShapeMember {
        ShapeMember(name: name, shape: shape, isRequired: false, description: description)
    }
}

/// An object's members, and what else it may hold.
struct ObjectShape: Sendable {
    enum Others: Sendable {
        case none, any
        case shaped(Shape)
    }

    var members: [ShapeMember]
    var others: Others

    init(_ members: [ShapeMember], others: Others) {
        self.members = members
        self.others = others
    }
}

extension JSONWriter {
    /// A schema.
    mutating func shape(_ shape: Shape, description: String = "") {
        object { writer in
            if !description.isEmpty { writer.member("description", description) }
            writer.shapeMembers(shape)
        }
    }

    private mutating func shapeMembers(_ shape: Shape) {
        switch shape {
        case .string(let format, let example):
            member("type", "string")
            if let format { member("format", format) }
            if let example {
                key("examples")
                array { $0.string(example) }
            }
        case .integer(let minimum, let maximum):
            member("type", "integer")
            if let minimum { member("minimum", integer: minimum) }
            if let maximum { member("maximum", integer: maximum) }
        case .number: member("type", "number")
        case .boolean: member("type", "boolean")
        case .null: member("type", "null")
        case .any: break
        case .oneOfTexts(let words):
            member("type", "string")
            key("enum")
            array { writer in for word in words { writer.string(word) } }
        case .exactly(let flag):
            member("type", "boolean")
            key("enum")
            array { $0.bool(flag) }
        case .array(let element, let maxItems):
            member("type", "array")
            key("items")
            self.shape(element)
            if let maxItems { member("maxItems", integer: Int64(maxItems)) }
        case .object(let object): objectMembers(object)
        case .reference(let name): member("$ref", "#/components/schemas/\(name)")
        case .anyOf(let shapes):
            key("anyOf")
            array { writer in for shape in shapes { writer.shape(shape) } }
        }
    }

    private mutating func objectMembers(_ object: ObjectShape) {
        member("type", "object")
        if !object.members.isEmpty {
            key("properties")
            self.object { writer in
                for member in object.members {
                    writer.key(member.name)
                    writer.shape(member.shape, description: member.description)
                }
            }
        }
        let required = object.members.filter(\.isRequired)
        if !required.isEmpty {
            key("required")
            array { writer in for member in required { writer.string(member.name) } }
        }
        switch object.others {
        case .none: member("additionalProperties", false)
        case .any: break
        case .shaped(let shape):
            key("additionalProperties")
            self.shape(shape)
        }
    }
}
