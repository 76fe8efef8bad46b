package import RecordModel
package import Wire

/// A time for which an administrator is let in as a user of one container's environment.
///
/// It is no secret: a request names it by its id, and counts only beside the administrator's own credential. It ends by
/// itself, by an administrator, with the session of the console in which it began, and with its administrator.
package struct ActingSession: Hashable, Sendable {
    /// The administrator's name; empty for the token that every node has in a file.
    package var administrator: String
    /// The session of the console in which it began, by its id; empty where a token was shown.
    package var consoleSession: String
    /// Where it holds.
    package var container: String
    /// In which of the container's environments.
    package var environment: Environment
    /// The user's.
    package var accountID: String
    /// Why, in the administrator's words.
    package var reason: String
    /// Whether things may be changed, too.
    package var mayWrite: Bool
    /// Milliseconds since 1970.
    package var expires: Int64

    /// A time until `expires`.
    package init(
        by administrator: String, in consoleSession: String, as accountID: String, of place: SchemaKey, reason: String,
        mayWrite: Bool, expires: Int64
    ) {
        self.administrator = administrator
        self.consoleSession = consoleSession
        container = place.container
        environment = place.environment
        self.accountID = accountID
        self.reason = reason
        self.mayWrite = mayWrite
        self.expires = expires
    }

    /// Where it holds, as one value.
    package var schemaKey: SchemaKey { SchemaKey(container: container, environment: environment) }

    /// Characters of a reason.
    package static let reasonLengthMax = 500
    /// What no limit allows more than, in minutes.
    package static let minutesMax: Int64 = 15
}

extension ActingSession: WireMessage {
    package static var blank: Self {
        ActingSession(
            by: "", in: "", as: "", of: SchemaKey(container: "", environment: .development), reason: "",
            mayWrite: false, expires: 0)
    }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &administrator)
        try wire.field(2, &consoleSession)
        try wire.required(3, &container)
        try wire.required(4, &environment)
        try wire.required(5, &accountID)
        try wire.field(6, &reason)
        try wire.field(7, &mayWrite, unless: false)
        try wire.required(8, &expires)
    }
}
