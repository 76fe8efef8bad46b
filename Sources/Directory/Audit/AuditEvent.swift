package import Wire

/// Who asked for something, by which request, from where and when.
package struct AuditOrigin: Hashable, Sendable {
    /// Such as `administrator`, `administrator grace`, `user ada`, `key 1f..` or `node 2`; never a secret.
    package var actor: String
    /// By which the logs of every node that the request crossed name it.
    package var requestID: String
    /// The client's address; empty where there is none.
    package var address: String
    /// Milliseconds since 1970, by the clock of the node that was asked.
    package var time: Int64

    /// The actor of administration by the token that every node has in a file.
    package static let administrator = "administrator"

    /// The actor of administration by an administrator's own token.
    package static func administrator(named name: String) -> String { "\(administrator) \(name)" }

    /// Whether an administrator asks. No other actor begins with this word.
    package var isAdministrator: Bool {
        actor == Self.administrator || actor.hasPrefix(Self.administrator(named: ""))
    }

    package init(actor: String, requestID: String, address: String, time: Int64) {
        self.actor = actor
        self.requestID = requestID
        self.address = address
        self.time = time
    }
}

/// Something that was done or refused, as the audit log tells of it. No text in it is a secret.
package struct AuditEvent: Hashable, Sendable {
    package var origin: AuditOrigin
    /// Such as `token.create` or `sign-in`.
    package var action: String
    /// What it was done to.
    package var subject: String
    /// `done`, or why it was refused.
    package var outcome: String
    /// How many alike this one stands for.
    package var count: UInt64

    /// The outcome of what was not refused.
    package static let done = "done"

    package init(origin: AuditOrigin, action: String, subject: String, outcome: String = Self.done, count: UInt64 = 1) {
        self.origin = origin
        self.action = action
        self.subject = subject
        self.outcome = outcome
        self.count = count
    }
}

extension AuditOrigin: WireMessage {
    package static var blank: Self { AuditOrigin(actor: "", requestID: "", address: "", time: 0) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &actor)
        try wire.field(2, &requestID)
        try wire.field(3, &address)
        try wire.field(4, &time)
    }
}

extension AuditEvent: WireMessage {
    package static var blank: Self {
        AuditEvent(
            origin: AuditOrigin(actor: "", requestID: "", address: "", time: 0), action: "", subject: "", outcome: "",
            count: 0)
    }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &origin)
        try wire.field(2, &action)
        try wire.field(3, &subject)
        try wire.field(4, &outcome)
        try wire.field(5, &count)
    }
}
