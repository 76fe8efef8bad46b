package import Wire

/// CloudKit Web Services' error codes; the raw value is the one on the wire. Clients know these and no others.
package enum ErrorCode: String, Hashable, Sendable, CaseIterable, WireValue {
    case accessDenied = "ACCESS_DENIED"
    case atomicError = "ATOMIC_ERROR"
    case authenticationFailed = "AUTHENTICATION_FAILED"
    case authenticationRequired = "AUTHENTICATION_REQUIRED"
    case badRequest = "BAD_REQUEST"
    case conflict = "CONFLICT"
    case exists = "EXISTS"
    case internalError = "INTERNAL_ERROR"
    case notFound = "NOT_FOUND"
    case quotaExceeded = "QUOTA_EXCEEDED"
    case throttled = "THROTTLED"
    case tryAgainLater = "TRY_AGAIN_LATER"
    case validatingReferenceError = "VALIDATING_REFERENCE_ERROR"
    case zoneNotFound = "ZONE_NOT_FOUND"

    /// The HTTP status of a whole request that fails with this code.
    package var httpStatus: Int {
        switch self {
        case .atomicError, .badRequest: 400
        case .authenticationFailed: 401
        case .accessDenied: 403
        case .notFound, .zoneNotFound: 404
        case .conflict, .exists: 409
        case .validatingReferenceError: 412
        case .quotaExceeded: 413
        case .authenticationRequired: 421
        case .throttled: 429
        case .internalError: 500
        case .tryAgainLater: 503
        }
    }
}

/// What an error says for programs where its code stands for several things: the member `detail`. Programs pass over
/// one that they do not know.
package enum ErrorDetail: String, Hashable, Sendable, CaseIterable {
    /// Nothing was done, so that the request may be sent again as it is.
    case nothingDone
    /// There is no such container (any longer).
    case unknownContainer
    /// The schema has no such record type.
    case unknownRecordType
    /// The sync token cannot be followed: begin again without one.
    case expiredSyncToken
    /// The request, or a record or value in it, is too large, or names too many things.
    case tooLarge
    /// The answer would be too large: ask for less.
    case tooLongAnswer
    /// A value is nested too deeply.
    case tooDeep
    /// The idempotency key was used for something else, or is too old for its answer to be known.
    case idempotencyKey
}

/// An error as a client sees it: a code it knows, and a reason that says what was wrong, where, and what to do.
package struct ServiceError: Error, Hashable, Sendable, WireMessage {
    /// The kind of error, for programs; `detail` distinguishes errors that share a code.
    package var code: ErrorCode
    /// What was wrong, where and what to do, for people; CloudKit's own words come first where it has any.
    package var reason: String
    /// Seconds after which a retry may help; nil where it does not.
    package var retryAfterSeconds: Double?
    /// No outcome that a shard remembers has one: replicas of earlier builds would remember something else.
    package var detail: ErrorDetail?
    /// The index without which a query was refused.
    package var missingIndex: MissingIndex?

    package init(_ code: ErrorCode, _ reason: String, retryAfterSeconds: Double? = nil, detail: ErrorDetail? = nil) {
        self.code = code
        self.reason = reason
        self.retryAfterSeconds = retryAfterSeconds
        self.detail = detail
    }

    /// `TRY_AGAIN_LATER`, where nothing was done.
    /// - Parameter reason: why; follows `nothing was done: `.
    package static func nothingDone(_ reason: String, retryAfterSeconds: Double = 1) -> ServiceError {
        ServiceError(
            .tryAgainLater, "nothing was done: \(reason)", retryAfterSeconds: retryAfterSeconds, detail: .nothingDone)
    }

    /// `retryAfterSeconds` in whole milliseconds, rounded up; at most a year.
    package var retryAfterMilliseconds: Int64? {
        retryAfterSeconds.map { seconds in
            let microseconds = (min(max(0, seconds), 366 * 86_400) * 1_000_000).rounded()
            return Int64((microseconds / 1_000).rounded(.up))
        }
    }

    /// The same in whole seconds, rounded up: as the header `Retry-After` and the member `retryAfter` say it.
    package var retryAfterWholeSeconds: Int64? { retryAfterMilliseconds.map { ($0 + 999) / 1_000 } }

    package static var blank: Self { ServiceError(.internalError, "", retryAfterSeconds: nil) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &code)
        try wire.required(2, &reason)
        try wire.field(3, &retryAfterSeconds)
        var name = detail?.rawValue
        try wire.field(4, &name)
        detail = name.flatMap(ErrorDetail.init)
    }
}

/// An index that a query needs and its record type lacks.
package struct MissingIndex: Hashable, Sendable {
    /// The record type's name.
    package var recordType: String
    /// As the schema names it.
    package var field: String
    /// Such as `QUERYABLE`.
    package var index: String
}
