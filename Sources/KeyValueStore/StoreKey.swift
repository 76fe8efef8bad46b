package import RecordModel
package import Wire

/// Names one key-value store: there is one for each user of a container's environment.
package struct StoreKey: Hashable, Sendable {
    @Bytewise package var container: String
    package var environment: Environment
    /// The user record name.
    @Bytewise package var user: String

    package init(container: String, environment: Environment, user: String) {
        self.container = container
        self.environment = environment
        self.user = user
    }
}

extension StoreKey: WireCodable {
    package func encode(to writer: inout WireWriter) {
        writer.field(1, container)
        writer.field(2, environment == .production)
        writer.field(3, user)
    }

    package init(from reader: inout WireReader) throws(WireError) {
        self.init(container: "", environment: .development, user: "")
        while let field = try reader.nextField() {
            switch field {
            case 1: container = try reader.string()
            case 2: environment = try reader.bool() ? .production : .development
            case 3: user = try reader.string()
            default: try reader.skip()
            }
        }
    }
}
