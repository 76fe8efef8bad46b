package import KeyValueStore
package import RecordModel
package import Wire

/// What a shard answers to a read. Records and preferences come as JSON that the edge passes on: it is rendered once,
/// where the rows are.
package enum ReadAnswer: Hashable, Sendable, WireCodable {
    case found(ShardAnswer)
    case refused(ServiceError)
    /// The shard holds another version of the schema: a lower one has to be installed, a higher one to be fetched.
    case needsSchema(installed: UInt64)

    package func encode(to writer: inout WireWriter) {
        var parts = Parts()
        switch self {
        case .found(let answer):
            parts.answer = answer
            parts.bytes = answer.bytes
        case .refused(let error): parts.refusal = error
        case .needsSchema(let installed): parts.installed = installed
        }
        parts.encode(to: &writer)
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var parts = try Parts(from: &reader)
        if let bytes = parts.bytes {
            parts.answer.bytes = bytes
            self = .found(parts.answer)
        } else if let refusal = parts.refusal {
            self = .refused(refusal)
        } else if let installed = parts.installed {
            self = .needsSchema(installed: installed)
        } else {
            throw .missingField(1)
        }
    }

    /// The binary form.
    private struct Parts: WireMessage {
        /// Of what was found, and nil of the others.
        var bytes: [UInt8]?
        var answer = ShardAnswer([])
        var refusal: ServiceError?
        var installed: UInt64?

        static var blank: Self { Parts() }

        mutating func fields(_ wire: inout WireFields) throws(WireError) {
            try wire.field(1, &bytes)
            try wire.field(2, &answer.cursor)
            try wire.field(3, &refusal)
            try wire.field(4, &installed)
            try wire.field(5, &answer.hasMore, unless: false)
            try wire.field(6, &answer.explanation)
            try wire.field(7, &answer.denials, unless: 0)
            try wire.field(8, &answer.changes, unless: 0)
            try wire.field(9, &answer.expiry)
            try wire.field(10, &answer.count, unless: 0)
        }
    }
}

/// What a shard found. The request defines what is in it.
package struct ShardAnswer: Hashable, Sendable {
    package var bytes: [UInt8]
    /// Where to go on: a query's cursor or a feed's token.
    package var cursor: [UInt8]?
    /// Whether a feed goes on.
    package var hasMore = false
    /// A JSON object that says how a query was answered.
    package var explanation: [UInt8]?
    /// How many items the caller was refused for lack of permission.
    package var denials = 0
    /// How many records of a query or of a zone's feed there are; a build that does not know it says none.
    package var count = 0
    /// How many changes a page of a key-value store's feed has.
    package var changes = 0
    /// Why a key-value store's feed cannot be followed from the token that was sent; then there is nothing else.
    package var expiry: KeyValueTokenExpiry?

    package init(_ bytes: [UInt8], cursor: [UInt8]? = nil, hasMore: Bool = false) {
        self.bytes = bytes
        self.cursor = cursor
        self.hasMore = hasMore
    }
}
