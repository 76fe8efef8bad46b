package import Wire

/// What a user wants to be told of.
package struct Subscription: Hashable, Sendable {
    /// What it looks at; the raw value is the one in the log.
    package enum Kind: UInt64, Hashable, Sendable, CaseIterable {
        /// Records of one type that match a query.
        case query = 1
        /// A custom zone of a private database.
        case zone
        /// All custom zones of a private database.
        case database
    }

    /// On what a query subscription tells; the raw value is the one in the log.
    package struct Firing: OptionSet, Hashable, Sendable {
        /// The bits.
        package var rawValue: UInt64
        /// Creates a value from its parts.
        package init(rawValue: UInt64) { self.rawValue = rawValue }
        /// A record that matches is made.
        package static let create = Firing(rawValue: 1)
        /// A record that matches is changed.
        package static let update = Firing(rawValue: 2)
        /// A record that matches is deleted.
        package static let delete = Firing(rawValue: 4)
        /// All of them.
        package static let all: Firing = [.create, .update, .delete]
    }

    /// Unique among the user's subscriptions to databases of the scope.
    @Bytewise package var id: String
    package var scope: Scope
    /// What it looks at.
    package var kind: Kind
    /// The name of the zone it looks at; nil is every zone of the database.
    package var zone: String?
    /// Tells only of records of this type; nil is every type. A query has one.
    package var recordType: String?
    /// What records must match, for `query` only.
    package var query: Query?
    /// The query's JSON object as the client sent it.
    package var queryJSON: [UInt8] = []
    /// On what it tells; only of a query.
    package var firing: Firing = []
    /// Tells once, and is gone.
    package var firesOnce = false
    /// The JSON object that says what its notifications look like; empty where there is none.
    package var info: [UInt8] = []

    /// Creates a value from its parts.
    package init(id: String, scope: Scope, kind: Kind) {
        self.id = id
        self.scope = scope
        self.kind = kind
    }
}

extension Subscription: WireCodable {
    /// Writes the binary form.
    package func encode(to writer: inout WireWriter) {
        writer.field(1, id)
        writer.field(2, scope.wireCode)
        encodeContent(to: &writer)
    }

    /// Everything but its name and its database.
    package var content: [UInt8] {
        var writer = WireWriter()
        encodeContent(to: &writer)
        return writer.bytes
    }

    private func encodeContent(to writer: inout WireWriter) {
        writer.field(3, kind.rawValue)
        if let zone { writer.field(4, zone) }
        if let recordType { writer.field(5, recordType) }
        if let query { writer.field(6) { query.encode(to: &$0) } }
        if !queryJSON.isEmpty { writer.field(7, queryJSON) }
        if !firing.isEmpty { writer.field(8, firing.rawValue) }
        if firesOnce { writer.field(9, true) }
        if !info.isEmpty { writer.field(10, info) }
    }

    /// Reads the binary form; fields that are not known are skipped, or refused where nothing may be.
    package init(from reader: inout WireReader) throws(WireError) {
        var (id, scope, kind): (String?, Scope?, Kind?) = ("", .private, nil)
        var rest = Subscription(id: "", scope: .private, kind: .database)
        while let field = try reader.nextField() {
            switch field {
            case 1: id = try reader.string()
            case 2: scope = try reader.code(field)
            case 3: kind = try reader.choice()
            case 4: rest.zone = try reader.string()
            case 5: rest.recordType = try reader.string()
            case 6: rest.query = try reader.message()
            case 7: rest.queryJSON = try reader.array()
            case 8: rest.firing = Firing(rawValue: try reader.options(Firing.all.rawValue))
            case 9: rest.firesOnce = try reader.bool()
            case 10: rest.info = try reader.array()
            default: try reader.skip()
            }
        }
        rest.id = try required(id, 1)
        rest.scope = try required(scope, 2)
        rest.kind = try required(kind, 3)
        self = rest
    }
}
