import Directory
import HTTPTypes
import HummingbirdCore
import RecordModel
import Service

/// A request under `/admin/1`.
struct AdminRequest: Sendable {
    let administration: Administration
    let responder: WebResponder
    let call: WebCall
    let body: [UInt8]

    var method: String { call.request.method.rawValue }
    var url: RequestURL { call.url }

    /// Who asks, as it is at this moment: what goes on for long must not outlive a session or a role.
    func recheck() async throws(RequestFailure) -> AdministratorAccess {
        try await responder.recheckedAdministrator(call)
    }

    var service: RecordService { administration.service }

    /// The body; an empty object where there is none.
    func json() throws(RequestFailure) -> JSONValue { body.isEmpty ? .object([]) : try body.json() }

    /// A container as a path, a parameter or a body names it: checked before anything is looked up by it.
    static func containerName(_ text: String) throws(RequestFailure) -> String {
        try relay(ContainerName.check(text))
        return text
    }

    static func environment(_ text: String?) throws(RequestFailure) -> Environment {
        guard let text else { return .development }
        guard let environment = Environment(rawValue: text) else {
            throw .badRequest("environment: 'development' or 'production' is expected, not '\(text)'")
        }
        return environment
    }

    func respond() async throws(RequestFailure) -> Reply {
        if let name = url.text("container") { _ = try Self.containerName(name) }
        let route = try AdminRoute.find(method, url)
        do throws(RequestFailure) {
            try await route.permission?.require(for: self)
        } catch {
            if error.error.code == .accessDenied {
                service.audit.refused(
                    administration.origin, in: url["container"] ?? "", action: "admin/\(route.path)",
                    subject: "\(method) of the administration")
            }
            throw error
        }
        return try await route.respond(self)()
    }
}

// What the parameters of administrators' requests say.
extension RequestURL {
    /// A parameter; nil where it is missing or empty.
    func text(_ name: String) -> String? { self[name].flatMap { $0.isEmpty ? nil : $0 } }

    func need(_ name: String) throws(RequestFailure) -> String {
        if let value = text(name) { return value }
        throw .badRequest("the parameter '\(name)' is missing")
    }

    /// The container and environment that the parameters name.
    func schemaKey() throws(RequestFailure) -> SchemaKey {
        SchemaKey(container: try need("container"), environment: try AdminRequest.environment(self["environment"]))
    }

    /// Whether a parameter that is `true` or `false`, and `false` where it is missing, is set.
    /// - Throws: `BAD_REQUEST` for any other value, and for none: `dryRun=` must not be taken for `false`.
    func flag(_ name: String) throws(RequestFailure) -> Bool {
        switch self[name] {
        case nil, "false": return false
        case "true": return true
        case let other?: throw .badRequest("\(name): 'true' or 'false' is expected, not '\(other)'")
        }
    }

    func number(_ name: String) throws(RequestFailure) -> UInt64? {
        guard let text = self[name] else { return nil }
        if let number = UInt64(text) { return number }
        throw .badRequest("\(name): a whole number is expected, not '\(text)'")
    }

    /// How many entries one page of a list has: `limit`, and at most 1,000.
    func pageLimit() throws(RequestFailure) -> Int {
        guard let text = self["limit"] else { return 1_000 }
        guard let limit = Int(text), limit > 0 else {
            throw .badRequest("limit: a whole number from 1 is expected, not '\(text)'")
        }
        return min(limit, 1_000)
    }

    static func wrongCursor(_ text: String) -> RequestFailure {
        RequestFailure(.badRequest, "after: what 'next' of the last answer said is expected, not '\(text)'")
    }
}

// What the bodies of administrators' requests say.
extension JSONValue {
    /// A member; nil where it is missing or null.
    func given(_ key: String) -> JSONValue? { self[key].flatMap { $0.isNull ? nil : $0 } }

    /// A string that must be there.
    func text(_ key: String) throws(RequestFailure) -> String {
        if let text = self[key]?.string, !text.isEmpty { return text }
        throw .badRequest("\(key): a string is expected")
    }

    /// Nil where it is missing.
    func flag(_ key: String) throws(RequestFailure) -> Bool? {
        switch self[key] {
        case nil: return nil
        case .bool(let flag)?: return flag
        default: throw .badRequest("\(key): true or false is expected")
        }
    }

    func environment() throws(RequestFailure) -> Environment {
        try AdminRequest.environment(self["environment"]?.string)
    }

    /// The container and environment that the members name.
    func schemaKey() throws(RequestFailure) -> SchemaKey {
        SchemaKey(container: try AdminRequest.containerName(try text("container")), environment: try environment())
    }

    /// The member `label`; empty where it is missing.
    func label() throws(RequestFailure) -> String { try optionalLine("label") ?? "" }

    /// A text on one line, which may be empty; nil where it is missing.
    func optionalLine(_ key: String) throws(RequestFailure) -> String? {
        guard let given = given(key) else { return nil }
        if given.string == "" { return "" }
        if let line = given.string.flatMap({ AccountAdministration.line($0) }) { return line }
        throw .badRequest("\(key): at most \(Limits.nameLengthMax) characters on one line are expected")
    }

    func administratorName() throws(RequestFailure) -> String {
        let name = try text("name")
        if Administrator.isName(name) { return name }
        throw .badRequest("name: 1 to 64 letters, digits and any of - _ . @ are expected")
    }
}
