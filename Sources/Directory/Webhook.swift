package import RecordModel
package import Wire

/// An address outside the cluster that is told of changes in a container's environment.
package struct Webhook: Hashable, Sendable {
    /// What it is doing.
    package enum State: Hashable, Sendable {
        case enabled
        /// It was disabled, by an administrator or because deliveries failed for too long; the reason is for people.
        case disabled(reason: String)
        /// It is being removed: what stands for it on its shard goes first.
        case leaving
    }

    /// Of whose changes it is told.
    package var container: String
    /// Of which of the container's environments.
    package var environment: Environment
    /// Unique in the environment.
    package var name: String
    /// Random: one that is made again under the same name has another.
    package var id: String
    /// Where deliveries are sent.
    package var url: String
    /// One or two, the newest first, each sealed by `FieldVault.sealSecret`. Deliveries are signed with all of them.
    package var sealedSecrets: [[UInt8]]
    /// Types of the public database whose records are told of.
    package var recordTypes: [String]
    /// Fields of these records that are shown.
    package var fields: [String]
    /// Whether changes of custom zones are told of in the private databases of all users.
    package var watchesPrivate: Bool
    /// What it is doing.
    package var state: State
    /// Milliseconds since 1970.
    package var created: Int64
    /// Grows with each change, from 1.
    package var revision: UInt64 = 0

    /// Creates a value from its parts; the revision is that of a new one.
    package init(
        container: String, environment: Environment, name: String, id: String, url: String,
        sealedSecrets: [[UInt8]] = [], recordTypes: [String] = [], fields: [String] = [], watchesPrivate: Bool = false,
        state: State = .enabled, created: Int64 = 0
    ) {
        self.container = container
        self.environment = environment
        self.name = name
        self.id = id
        self.url = url
        self.sealedSecrets = sealedSecrets
        self.recordTypes = recordTypes
        self.fields = fields
        self.watchesPrivate = watchesPrivate
        self.state = state
        self.created = created
    }

    /// Webhooks of a container's environment.
    package static let countMax = 20
    /// Record types of one.
    package static let recordTypesMax = 50
    /// Bytes of a URL.
    package static let urlBytesMax = 2_048

    /// The URL without its path, which may be a secret.
    package var origin: String {
        url.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false).prefix(3).joined(separator: "/")
    }

    /// Whether a text can be the name of one: 1 to 64 letters, digits and any of `- _ .`, as it stands in paths and
    /// headers.
    package static func isName(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy { $0.isASCIILetterOrDigit || "-_.".utf8.contains($0) }
    }
}

/// A change of a container's webhooks.
package enum WebhookCommand: Hashable, Sendable {
    /// A new one, or new values of the one of that name, provided that its revision is still the one given.
    case save(Webhook)
    /// Removes one that is leaving.
    case remove(container: String, Environment, name: String)
}

extension WebhookCommand {
    var auditSummary: (action: String, subject: String) {
        switch self {
        case .save(let webhook):
            let action =
                switch webhook.state {
                case .leaving: "webhook.delete"
                case .disabled: "webhook.disable"
                case .enabled: webhook.revision == 0 ? "webhook.create" : "webhook.update"
                }
            var parts = ["\(Self.text(webhook.container, webhook.environment)): webhook \(webhook.name)"]
            if case .disabled(let reason) = webhook.state { parts.append(reason) }
            if webhook.state == .enabled { parts.append(webhook.origin) }
            return (action, parts.joined(separator: ", "))
        case .remove(let container, let environment, let name):
            return ("webhook.remove", "\(Self.text(container, environment)): webhook \(name)")
        }
    }

    private static func text(_ container: String, _ environment: Environment) -> String {
        "container \(container) (\(environment.rawValue))"
    }
}

extension Webhook: WireMessage {
    package static var blank: Self { Webhook(container: "", environment: .development, name: "", id: "", url: "") }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &container)
        try wire.required(2, &environment)
        try wire.field(3, &name)
        try wire.field(4, &id)
        try wire.field(5, &url)
        try wire.field(6, &sealedSecrets)
        try wire.field(7, &recordTypes)
        try wire.field(8, &fields)
        try wire.field(9, &watchesPrivate, unless: false)
        try wire.required(10, &state)
        try wire.field(11, &created)
        try wire.field(12, &revision)
    }
}

extension Webhook.State: WireUnion {
    package func encode(to writer: inout WireWriter) {
        switch self {
        case .enabled: writer.field(1, true)
        case .disabled(let reason): writer.field(2, reason)
        case .leaving: writer.field(3, true)
        }
    }

    package init?(_ number: Int, from reader: inout WireReader) throws(WireError) {
        switch number {
        case 1: self = try reader.flag(.enabled)
        case 2: self = .disabled(reason: try reader.string())
        case 3: self = try reader.flag(.leaving)
        default: return nil
        }
    }
}

extension WebhookCommand: WireUnion {
    package func encode(to writer: inout WireWriter) {
        switch self {
        case .save(let webhook): webhook.write(1, to: &writer)
        case .remove(let container, let environment, let name): writer.parts(2, container, environment, name)
        }
    }

    package init?(_ number: Int, from reader: inout WireReader) throws(WireError) {
        switch number {
        case 1: self = .save(try reader.message())
        case 2: self = try reader.parts { .remove(container: $0, $1, name: $2) }
        default: return nil
        }
    }
}
