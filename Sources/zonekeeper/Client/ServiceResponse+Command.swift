import RecordModel
import ServiceClient

extension ServiceResponse {
    /// The body's JSON.
    func json() throws(CommandFailure) -> JSONValue {
        do throws(JSONError) {
            return try parsed()
        } catch {
            throw CommandFailure("the answer (HTTP status \(status)) is not JSON: \(error). Is this a Zonekeeper node?")
        }
    }

    /// The response itself, unless it says that the request failed.
    /// - Throws: `CommandFailure` with the error's code and reason, and when to come back.
    func checked() throws(CommandFailure) -> ServiceResponse {
        if isSuccess { return self }
        guard let json = try? parsed(), let code = json["serverErrorCode"]?.string else {
            throw CommandFailure(
                "HTTP status \(status), without a reason. Is this a Zonekeeper node?",
                isOutcomeUnknown: isOutcomeUnknown)
        }
        let later = retryAfterSeconds.map { " (try again in \(Units.seconds($0)))" } ?? ""
        let signIn = json["redirectURL"]?.string.map { "; sign in with `zonekeeper user sign-in`, or at \($0)" } ?? ""
        let doubt =
            followsUncertainty && isOutcomeUnknown
            ? ". So ended the last attempt; an earlier one may have been done: look before you repeat it" : ""
        throw CommandFailure(
            "\(code): \(json["reason"]?.string ?? "no reason given")\(later)\(signIn)\(doubt)",
            isOutcomeUnknown: isOutcomeUnknown)
    }

    /// The failures of single records or zones inside an answer, as `CODE: name: reason`.
    static func failures(in members: [JSONValue]) -> [String] {
        members.compactMap { member in
            guard let code = member["serverErrorCode"]?.string else { return nil }
            let name = member["recordName"]?.string.map { "\($0): " } ?? ""
            return "\(code): \(name)\(member["reason"]?.string ?? "")"
        }
    }
}

extension CommandFailure {
    /// A command that could not ask the cluster.
    init(_ error: ServiceClientError) { self.init(error.message) }

    /// Does what needs a file, a key or a setting; where that cannot be used, the command fails with the same words.
    static func orElse<Value>(_ body: () throws(ServiceClientError) -> Value) throws(CommandFailure) -> Value {
        do throws(ServiceClientError) {
            return try body()
        } catch {
            throw CommandFailure(error)
        }
    }
}
