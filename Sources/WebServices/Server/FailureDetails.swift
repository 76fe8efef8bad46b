import KeyValueStore
import RecordModel

/// What an error says for programs, beside its code and reason.
enum FailureDetails: Hashable, Sendable {
    /// A limit that was reached: its name, what the request would have led to, and what is allowed; the key at fault, where it is
    /// one key's fault.
    case limit(String, actual: Int64, max: Int64, key: String? = nil)
    /// A key-value store's feed cannot be followed from the token that was sent.
    case expiredToken(KeyValueTokenExpiry)

    func write(to writer: inout JSONWriter) {
        switch self {
        case .limit(let name, let actual, let max, let key):
            writer.member("limit", name)
            writer.member("actual", integer: actual)
            writer.member("max", integer: max)
            if let key { writer.member("key", key) }
        case .expiredToken(let expiry): writer.member("syncTokenExpired", expiry.rawValue)
        }
    }
}

extension RequestFailure {
    /// A batch of preferences that breaks a rule.
    init(_ refusal: KeyValueRefusal) {
        self.init(refusal.isQuotaViolation ? .quotaExceeded : .badRequest, refusal.description)
        guard refusal.rule.isLimit else { return }
        details = .limit(refusal.rule.name, actual: refusal.actual, max: refusal.max, key: refusal.key)
    }

    /// A sync token of preferences that is one, and cannot be followed.
    init(_ expiry: KeyValueTokenExpiry) {
        self.init(.badRequest, "the syncToken has expired: \(expiry). Start again without one")
        details = .expiredToken(expiry)
    }
}
