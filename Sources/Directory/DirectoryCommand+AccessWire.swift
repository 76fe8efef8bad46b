import RecordModel
import Wire

// The forms of the commands that say who may do what, and how much.
extension DirectoryCommand {
    func encodeAccess(to writer: inout WireWriter) {
        switch self {
        case .setPassword(let account, let password, let endsSessions):
            writer.field(11) { change in
                change.field(1, account)
                if let password { change.field(2) { password.encode(to: &$0) } }
                change.field(3, endsSessions)
            }
        case .beginSession(let token, let basis):
            writer.field(12) { session in
                session.field(1) { token.encode(to: &$0) }
                session.field(2) { basis.encode(to: &$0) }
            }
        case .noteSignInFailure(let accountID, let time):
            writer.field(13) { failure in
                failure.field(1, accountID)
                failure.field(2, signed: time)
            }
        case .createServerKey(let key): writer.field(14) { key.encode(to: &$0) }
        case .revokeServerKey(let id): writer.field(15, id)
        case .addRoleMember(let member): writer.field(16) { member.encode(to: &$0) }
        case .removeRoleMember(let member): writer.field(17) { member.encode(to: &$0) }
        case .setLimits(let container, let changes):
            writer.field(18) { limits in
                if let container { limits.field(1, container) }
                for change in changes { limits.field(2) { change.encode(to: &$0) } }
            }
        case .setIdentityProvider(let provider): writer.field(19) { provider.encode(to: &$0) }
        case .removeIdentityProvider(let name): writer.field(20, name)
        case .setSignUp(let isOpen): writer.field(21, isOpen)
        case .purge(let time, let auditRecordsMax):
            writer.field(22) { purge in
                purge.field(1, signed: time)
                purge.field(2, auditRecordsMax)
            }
        default: encodeCluster(to: &writer)
        }
    }

    private func encodeCluster(to writer: inout WireWriter) {
        switch self {
        case .makeSecret(let key, let time):
            writer.field(24) { secret in
                secret.field(1, key)
                secret.field(2, signed: time)
            }
        case .endContainer(let name, let step):
            writer.field(25) { end in
                end.field(1, name)
                end.field(2) { step.encode(to: &$0) }
            }
        default: preconditionFailure("a command whose form is written elsewhere")
        }
    }

    /// The command in a field; nil, and the field stepped over, where it is none of these.
    static func access(_ field: Int, _ reader: inout WireReader) throws(WireError) -> Self? {
        switch field {
        case 11: return try setPassword(&reader)
        case 12: return try beginSession(&reader)
        case 13: return try noteSignInFailure(&reader)
        case 14: return .createServerKey(try reader.message())
        case 15: return .revokeServerKey(id: try reader.string())
        case 16: return .addRoleMember(try reader.message())
        case 17: return .removeRoleMember(try reader.message())
        case 18: return try setLimits(&reader)
        case 19: return .setIdentityProvider(try reader.message())
        case 20: return .removeIdentityProvider(name: try reader.string())
        case 21: return .setSignUp(isOpen: try reader.bool())
        case 22: return try purge(&reader)
        case 24: return try makeSecret(&reader)
        case 25: return try endContainer(&reader)
        default:
            try reader.skip()
            return nil
        }
    }

    private static func setPassword(_ reader: inout WireReader) throws(WireError) -> Self {
        var nested = try reader.nested()
        var account = ""
        var password: PasswordHash?
        var endsSessions = false
        while let field = try nested.nextField() {
            switch field {
            case 1: account = try nested.string()
            case 2: password = try nested.message()
            case 3: endsSessions = try nested.bool()
            default: try nested.skip()
            }
        }
        return .setPassword(account: account, password, endsSessions: endsSessions)
    }

    private static func beginSession(_ reader: inout WireReader) throws(WireError) -> Self {
        var nested = try reader.nested()
        var token: Token?
        var basis: SignInBasis?
        while let field = try nested.nextField() {
            switch field {
            case 1: token = try nested.message()
            case 2: basis = try nested.message()
            default: try nested.skip()
            }
        }
        guard let token else { throw .missingField(1) }
        guard let basis else { throw .missingField(2) }
        return .beginSession(token, basis)
    }

    private static func noteSignInFailure(_ reader: inout WireReader) throws(WireError) -> Self {
        var nested = try reader.nested()
        var accountID = ""
        var time: Int64 = 0
        while let field = try nested.nextField() {
            switch field {
            case 1: accountID = try nested.string()
            case 2: time = try nested.signed()
            default: try nested.skip()
            }
        }
        return .noteSignInFailure(accountID: accountID, time: time)
    }

    private static func setLimits(_ reader: inout WireReader) throws(WireError) -> Self {
        var nested = try reader.nested()
        var container: String?
        var changes: [LimitChange] = []
        while let field = try nested.nextField() {
            switch field {
            case 1: container = try nested.string()
            case 2: changes.append(try nested.message())
            default: try nested.skip()
            }
        }
        return .setLimits(container: container, changes)
    }

    private static func makeSecret(_ reader: inout WireReader) throws(WireError) -> Self {
        var nested = try reader.nested()
        var key: [UInt8] = []
        var time: Int64 = 0
        while let field = try nested.nextField() {
            switch field {
            case 1: key = try nested.array()
            case 2: time = try nested.signed()
            default: try nested.skip()
            }
        }
        return .makeSecret(key: key, time: time)
    }

    private static func endContainer(_ reader: inout WireReader) throws(WireError) -> Self {
        var nested = try reader.nested()
        var name = ""
        var step: ContainerEnd?
        while let field = try nested.nextField() {
            switch field {
            case 1: name = try nested.string()
            case 2: step = try nested.message()
            default: try nested.skip()
            }
        }
        guard let step else { throw .missingField(2) }
        return .endContainer(name, step)
    }

    private static func purge(_ reader: inout WireReader) throws(WireError) -> Self {
        var nested = try reader.nested()
        var time: Int64 = 0
        var auditRecordsMax = AuditRetention.recordsMax
        while let field = try nested.nextField() {
            switch field {
            case 1: time = try nested.signed()
            case 2: auditRecordsMax = try nested.unsigned()
            default: try nested.skip()
            }
        }
        return .purge(time: time, auditRecordsMax: auditRecordsMax)
    }
}
