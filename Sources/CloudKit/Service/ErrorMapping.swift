import Foundation
import RecordModel
import ServiceClient

/// Turns errors of the network and the server into `CKError`.
struct ErrorMapping: Sendable {
    /// The container that was asked.
    var container: String?
    /// Whether no user is signed in: an operation that is not permitted then needs a user.
    var isAnonymous = false

    func error(_ error: any Error) -> CKError {
        switch error {
        case let error as CKError: error
        case let failure as ServiceFailure: self.error(of: failure)
        case let file as AssetFileError: Self.local(file)
        case let damage as AssetDamaged:
            CKError(.networkFailure, reason: damage.description, details: CKErrorDetails(containerID: container))
        case let unreachable as ServiceUnreachable:
            // A request that was sent and not answered may have been done. Otherwise the cluster cannot be reached.
            CKError(
                unreachable.wasSent ? .networkFailure : .networkUnavailable, reason: unreachable.description,
                details: CKErrorDetails(containerID: container))
        case let error as ServiceClientError:
            CKError(
                error.subject == .session ? .notAuthenticated : .badContainer, reason: error.message,
                details: CKErrorDetails(containerID: container))
        case is CancellationError: Self.cancelled
        default:
            CKError(.internalError, reason: "\(error)", details: CKErrorDetails(containerID: container))
        }
    }

    static var cancelled: CKError {
        CKError(.operationCancelled, reason: "the operation was cancelled; what it had sent may have been done")
    }

    private func error(of failure: ServiceFailure) -> CKError {
        var code =
            code(failure.code, failure.detail) ?? (failure.status >= 500 ? .serviceUnavailable : .internalError)
        if failure.status == 501 { code = .serverRejectedRequest }
        if failure.status == 413 { code = .limitExceeded }
        return CKError(code, reason: failure.reason, details: details(of: failure))
    }

    func details(of failure: ServiceFailure) -> CKErrorDetails {
        CKErrorDetails(
            serverMessage: failure.reason, serverCode: failure.code.isEmpty ? nil : failure.code,
            detail: failure.detail, requestUUID: failure.uuid, containerID: container,
            retryAfterSeconds: failure.retryAfterSeconds)
    }

    /// The details of an item's error; the item has a `serverErrorCode`.
    func details(ofItem json: JSONValue) -> CKErrorDetails {
        CKErrorDetails(
            serverMessage: json["reason"]?.string, serverCode: json["serverErrorCode"]?.string,
            detail: ErrorDetail(ofError: json), requestUUID: json["uuid"]?.string, containerID: container,
            retryAfterSeconds: json.retryAfterSeconds)
    }

    /// The error of one record or zone of an answer; nil if it did not fail.
    func item(_ json: JSONValue) -> CKError? {
        guard let code = json["serverErrorCode"]?.string else { return nil }
        let reason = json["reason"]?.string ?? "no reason given"
        let details = details(ofItem: json)
        let mapped = code == "TRY_AGAIN_LATER" ? .zoneBusy : self.code(code, details.detail) ?? .internalError
        return CKError(mapped, reason: reason, details: details)
    }

    /// The error of one subscription of an answer. CloudKit rejects one whose content another has under its own ID.
    func subscription(_ json: JSONValue) -> CKError? {
        guard json["serverErrorCode"]?.string == ErrorCode.exists.rawValue else { return item(json) }
        return CKError(
            .serverRejectedRequest, reason: json["reason"]?.string ?? "no reason given", details: details(ofItem: json))
    }

    private func code(_ serverCode: String, _ detail: ErrorDetail?) -> CKError.Code? {
        let code = Self.code(serverCode, detail)
        return isAnonymous && code == .permissionFailure ? .notAuthenticated : code
    }

    /// CloudKit's code for one of the server's; nil for an unknown one.
    /// - Parameter detail: selects among the framework's codes where the server has a single one.
    static func code(_ serverCode: String, _ detail: ErrorDetail?) -> CKError.Code? {
        switch ErrorCode(rawValue: serverCode) {
        case .accessDenied: .permissionFailure
        case .atomicError: .batchRequestFailed
        case .authenticationFailed, .authenticationRequired: .notAuthenticated
        case .badRequest: badRequest(detail)
        case .conflict, .exists: .serverRecordChanged
        case .internalError: .internalError
        case .notFound: detail == .unknownContainer ? .badContainer : .unknownItem
        case .quotaExceeded: .quotaExceeded
        case .throttled: .requestRateLimited
        case .tryAgainLater: .serviceUnavailable
        case .validatingReferenceError: .referenceViolation
        case .zoneNotFound: .zoneNotFound
        case nil: nil
        }
    }

    private static func badRequest(_ detail: ErrorDetail?) -> CKError.Code {
        switch detail {
        case .expiredSyncToken: .changeTokenExpired
        case .unknownRecordType: .unknownItem
        case .tooLarge, .tooLongAnswer: .limitExceeded
        case .nothingDone, .unknownContainer, .tooDeep, .idempotencyKey, nil: .invalidArguments
        }
    }
}

extension CKError {
    /// Whether it concerns the whole request: the cluster could not be reached, or did not accept the caller.
    var isOfWholeRequest: Bool {
        isOfUnreachableServer
            || [.notAuthenticated, .badContainer, .operationCancelled, .internalError].contains(code)
    }

    /// Whether no node could be asked, or had time: another time it may be otherwise.
    var isOfUnreachableServer: Bool {
        [.networkUnavailable, .networkFailure, .serviceUnavailable, .requestRateLimited].contains(code)
    }

    /// Whether the server's answer would have been too long: fewer records may fit.
    var isOfTooLongAnswer: Bool {
        _nsError.userInfo[Key.serverDetail] as? String == ErrorDetail.tooLongAnswer.rawValue
    }

    /// An answer that did not come from a node.
    static func unreadable(_ what: String) -> CKError {
        CKError(.internalError, reason: "the answer has no \(what) in it. Is this a Zonekeeper node?")
    }

    /// A feature of CloudKit that the server does not have yet.
    static func notBuilt(_ what: String) -> CKError {
        CKError(.serverRejectedRequest, reason: "the server does not have \(what) yet")
    }
}

/// The details of an error, beside its code.
struct CKErrorDetails {
    var serverMessage: String?
    /// The server's own code, such as `ACCESS_DENIED`.
    var serverCode: String?
    /// What the error is about, beside its code.
    var detail: ErrorDetail?
    /// The server's name for the request, with which it can be found in the server's log.
    var requestUUID: String?
    /// The container that was asked.
    var containerID: String?
    var retryAfterSeconds: Double?
    /// The error of each item, by record ID, zone ID or subscription ID.
    var partialErrors: [AnyHashable: any Error]?
    var serverRecord: CKRecord?
    var clientRecord: CKRecord?
    var ancestorRecord: CKRecord?
    /// The underlying error, such as the network's.
    var underlying: (any Error)?
}

extension CKError {
    /// An error that the service or the SDK found.
    ///
    /// `reason` says what was wrong, where, and what to do; it is what `localizedDescription` gives.
    init(_ code: Code, reason: String, details: CKErrorDetails = CKErrorDetails()) {
        var info: [String: Any] = [NSLocalizedDescriptionKey: reason, Key.reason: reason]
        info[Key.serverMessage] = details.serverMessage
        info[Key.serverCode] = details.serverCode
        info[Key.serverDetail] = details.detail?.rawValue
        info[Key.requestUUID] = details.requestUUID
        info[Key.containerID] = details.containerID
        info[CKErrorRetryAfterKey] = details.retryAfterSeconds.map { NSNumber(value: $0) }
        info[CKPartialErrorsByItemIDKey] = details.partialErrors
        info[CKRecordChangedErrorServerRecordKey] = details.serverRecord
        info[CKRecordChangedErrorClientRecordKey] = details.clientRecord
        info[CKRecordChangedErrorAncestorRecordKey] = details.ancestorRecord
        info[NSUnderlyingErrorKey] = details.underlying
        self.init(_nsError: NSError(domain: CKErrorDomain, code: code.rawValue, userInfo: info))
    }

    /// The keys of `userInfo` that have no public name, as Apple's framework spells them where it has them.
    enum Key {
        static let reason = "CKErrorDescription"
        static let serverMessage = "ServerErrorDescription"
        static let serverCode = "ServerErrorCode"
        static let serverDetail = "ServerErrorDetail"
        static let requestUUID = "RequestUUID"
        static let containerID = "ContainerID"
    }
}
