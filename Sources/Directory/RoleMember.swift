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

extension RoleMember: WireMessage {
    package static var blank: Self { RoleMember(container: "", environment: .development, role: "", accountID: "") }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &container)
        try wire.required(2, &environment)
        try wire.field(3, &role)
        try wire.field(4, &accountID)
    }
}
