package import RecordModel
package import Wire

/// That an account has a custom security role in one container's environment.
package struct RoleMember: Hashable, Sendable {
    @Bytewise package var container: String
    package var environment: Environment
    @Bytewise package var role: String
    @Bytewise package var accountID: String

    package init(container: String, environment: Environment, role: String, accountID: String) {
        self.container = container
        self.environment = environment
        self.role = role
        self.accountID = accountID
    }
}

extension RoleMember: Comparable {
    /// By container, environment, role, account's id.
    package static func < (left: Self, right: Self) -> Bool {
        (left.$container, left.environment.rawValue, left.$role, left.$accountID)
            < (right.$container, right.environment.rawValue, right.$role, right.$accountID)
    }
}

extension RoleMember: WireCodable {
    /// 1 container, 2 environment, 3 role, 4 account's id.
    package func encode(to writer: inout WireWriter) {
        writer.field(1, container)
        writer.field(2, environment.rawValue)
        writer.field(3, role)
        writer.field(4, accountID)
    }

    package init(from reader: inout WireReader) throws(WireError) {
        // Into variables of its own: release builds of Swift 6.3 do not compile changes of wrapped properties here.
        var (container, role, accountID) = ("", "", "")
        var environment: Environment?
        while let field = try reader.nextField() {
            switch field {
            case 1: container = try reader.string()
            case 2: environment = try reader.choice()
            case 3: role = try reader.string()
            case 4: accountID = try reader.string()
            default: try reader.skip()
            }
        }
        guard let environment else { throw .missingField(2) }
        self.init(container: container, environment: environment, role: role, accountID: accountID)
    }
}
