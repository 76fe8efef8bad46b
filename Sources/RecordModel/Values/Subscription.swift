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
    /// The kind of database that it looks at.
    package var scope: Scope
    /// What it looks at.
    package var kind: Kind
    /// The name of the zone it looks at; nil is every zone of the database.
    package var zone: String?
    /// The life of that zone, as its incarnation, for which it was saved: it ends with that or a later one. Clients are
    /// not told. Nil for the default zone, and for what was saved below `FeatureLevel.boundSubscriptions`.
    package var zoneLife: UInt64?
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

    package init(id: String, scope: Scope, kind: Kind) {
        self.id = id
        self.scope = scope
        self.kind = kind
    }
}

extension Subscription.Kind: WireValue {}

extension Subscription.Firing: WireOptions {
    /// The bits that this build knows; a strict reader refuses any others, and other readers drop them.
    package static let known = all
}

extension Subscription: WireMessage {
    package static var blank: Self { Subscription(id: "", scope: .private, kind: .database) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &id)
        try wire.required(2, &scope)
        try wire.required(3, &kind)
        try wire.field(4, &zone)
        try wire.field(5, &recordType)
        try wire.field(6, &query)
        try wire.field(7, &queryJSON, unless: [])
        try wire.field(8, &firing, unless: [])
        try wire.field(9, &firesOnce, unless: false)
        try wire.field(10, &info, unless: [])
        try wire.field(11, &zoneLife)
    }

    /// Everything but its name and its database.
    package var content: [UInt8] {
        var content = self
        content.id = ""
        content.scope = .private
        return content.encoded()
    }
}
