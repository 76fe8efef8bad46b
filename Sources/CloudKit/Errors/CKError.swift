// Names of Apple's begin with the framework's.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

public import Foundation

/// What fails in CloudKit: a code and what goes with it.
///
/// What the framework throws and hands to completion handlers is this type; `error as NSError` gives domain, code and
/// `userInfo`. The way back by a cast, from an NSError to this type, does not exist on Linux: `init(_nsError:)` does
/// it.
public struct CKError: _BridgedStoredNSError {
    /// The error as Foundation has it.
    public let _nsError: NSError

    /// Takes an NSError of the domain `CKErrorDomain` whose code is one of `Code`.
    public init(_nsError error: NSError) {
        precondition(error.domain == CKErrorDomain, "an error of the domain \(error.domain) is no CKError")
        _nsError = error
    }

    /// `CKErrorDomain`.
    public static var errorDomain: String { CKErrorDomain }
    /// The domain of the NSError.
    public static var _nsErrorDomain: String { CKErrorDomain }

    /// What went wrong.
    public var code: CKError.Code { Code(rawValue: _nsError.code) ?? .internalError }
    /// The number of the code.
    public var errorCode: Int { _nsError.code }
    /// What goes with the code: see the keys `CKPartialErrorsByItemIDKey` and so on.
    public var errorUserInfo: [String: Any] { _nsError.userInfo }
    /// The same as `errorUserInfo`.
    public var userInfo: [String: Any] { _nsError.userInfo }
    /// What happened, in words for the user.
    public var localizedDescription: String { _nsError.localizedDescription }

    /// The errors of the items of a batch, by record ID, zone ID or subscription ID; nil for other errors.
    public var partialErrorsByItemID: [AnyHashable: any Error]? {
        _nsError.userInfo[CKPartialErrorsByItemIDKey] as? [AnyHashable: any Error]
    }

    /// After how many seconds to try again; nil where the service did not say.
    public var retryAfterSeconds: Double? {
        (_nsError.userInfo[CKErrorRetryAfterKey] as? NSNumber)?.doubleValue
    }

    /// For `serverRecordChanged`: the record as this program last knew it from the server.
    public var ancestorRecord: CKRecord? { _nsError.userInfo[CKRecordChangedErrorAncestorRecordKey] as? CKRecord }
    /// For `serverRecordChanged`: the record as the server has it.
    public var serverRecord: CKRecord? { _nsError.userInfo[CKRecordChangedErrorServerRecordKey] as? CKRecord }
    /// For `serverRecordChanged`: the record whose save failed.
    public var clientRecord: CKRecord? { _nsError.userInfo[CKRecordChangedErrorClientRecordKey] as? CKRecord }
}

extension CKError: CustomStringConvertible, CustomDebugStringConvertible {
    /// What was wrong and what to do about it.
    public var description: String { debugDescription }

    /// `<CKError 0x…: "Permission Failure" (10/ACCESS_DENIED); server message = "…"; uuid = …; container ID = "…">`:
    /// the code in words, its number and the server's own code, then what is known beside them.
    public var debugDescription: String {
        let info = _nsError.userInfo
        let inner = (info[Key.serverCode] as? String).map { "/" + $0 } ?? ""
        var parts = ["\"\(code.title)\" (\(errorCode)\(inner))"]
        if let message = info[Key.serverMessage] as? String {
            parts.append("server message = \"\(message)\"")
        } else if let reason = info[Key.reason] as? String ?? info[NSLocalizedDescriptionKey] as? String {
            parts.append("\"\(reason)\"")
        }
        if let seconds = retryAfterSeconds { parts.append("retry after \(seconds) seconds") }
        if let uuid = info[Key.requestUUID] as? String { parts.append("uuid = \(uuid)") }
        if let container = info[Key.containerID] as? String { parts.append("container ID = \"\(container)\"") }
        if let partial = partialErrorsByItemID {
            let texts = partial.map { "\($0.key): \($0.value)" }.sorted()
            parts.append("partial errors: {\(texts.joined(separator: ", "))}")
        }
        let address = String(UInt(bitPattern: ObjectIdentifier(_nsError)), radix: 16)
        return "<CKError 0x\(address): \(parts.joined(separator: "; "))>"
    }
}

extension CKError {
    /// What went wrong, with Apple's numbers.
    public enum Code: Int, Hashable, Sendable, _ErrorCodeProtocol {
        /// The error whose code it is.
        public typealias _ErrorType = CKError

        /// The service failed in a way that no other code names.
        case internalError = 1
        /// Some items of a batch failed: `partialErrorsByItemID` says which and why.
        case partialFailure = 2
        /// There is no network, or no node of the cluster can be reached.
        case networkUnavailable = 3
        /// The network failed while a request was under way.
        case networkFailure = 4
        /// The container does not exist or is not configured.
        case badContainer = 5
        /// The service cannot answer now; `retryAfterSeconds` may say when it can.
        case serviceUnavailable = 6
        /// Too many requests; `retryAfterSeconds` says when to try again.
        case requestRateLimited = 7
        /// The app may not use the container.
        case missingEntitlement = 8
        /// No user is signed in, and the request needs one.
        case notAuthenticated = 9
        /// The user may not do that.
        case permissionFailure = 10
        /// What was asked for does not exist.
        case unknownItem = 11
        /// The request makes no sense as it stands.
        case invalidArguments = 12
        /// Older servers' word for a page of results.
        @available(*, deprecated, message: "Will not be returned")
        case resultsTruncated = 13
        /// The server has another version of the record: `serverRecord`, `clientRecord` and `ancestorRecord` tell.
        case serverRecordChanged = 14
        /// The server refuses the request whatever is done to it.
        case serverRejectedRequest = 15
        /// An asset's file is not there.
        case assetFileNotFound = 16
        /// An asset's file changed while it was sent.
        case assetFileModified = 17
        /// This version of the app is too old for the data.
        case incompatibleVersion = 18
        /// A field that has to be unique is not.
        case constraintViolation = 19
        /// The operation or task was cancelled.
        case operationCancelled = 20
        /// The change token is too old: fetch everything again, without a token.
        case changeTokenExpired = 21
        /// Another item of the atomic batch failed.
        case batchRequestFailed = 22
        /// The zone is busy; try again after `retryAfterSeconds`.
        case zoneBusy = 23
        /// The database does not have this.
        case badDatabase = 24
        /// The user's or the container's storage is full.
        case quotaExceeded = 25
        /// The zone does not exist.
        case zoneNotFound = 26
        /// The request is too large: send fewer items.
        case limitExceeded = 27
        /// The user deleted the zone in the system's settings.
        case userDeletedZone = 28
        /// A share has too many participants.
        case tooManyParticipants = 29
        /// The record is part of another share.
        case alreadyShared = 30
        /// A reference's target does not exist, or the deletion would leave one without.
        case referenceViolation = 31
        /// The managed account may not do that.
        case managedAccountRestricted = 32
        /// The participant has to confirm who it is.
        case participantMayNeedVerification = 33
        /// The answer was lost: whether the request took effect is not known.
        case serverResponseLost = 34
        /// The asset's bytes cannot be had.
        case assetNotAvailable = 35
        /// The account cannot be used now.
        case accountTemporarilyUnavailable = 36
        /// The participant was invited before.
        case participantAlreadyInvited = 37
    }
}

/// The domain of the errors of CloudKit.
public let CKErrorDomain = "CKErrorDomain"

/// In `userInfo`: the error of each item of a batch that failed, by record ID, zone ID or subscription ID.
public let CKPartialErrorsByItemIDKey = "CKPartialErrors"
/// In `userInfo`: after how many seconds to try again, a number.
public let CKErrorRetryAfterKey = "CKRetryAfter"
/// In `userInfo` of `serverRecordChanged`: the record as this program last knew it from the server.
public let CKRecordChangedErrorAncestorRecordKey = "AncestorRecord"
/// In `userInfo` of `serverRecordChanged`: the record as the server has it. Merge into this one and save it.
public let CKRecordChangedErrorServerRecordKey = "ServerRecord"
/// In `userInfo` of `serverRecordChanged`: the record whose save failed.
public let CKRecordChangedErrorClientRecordKey = "ClientRecord"
/// In `userInfo` of `zoneNotFound`: whether the user reset the encrypted data, a number.
public let CKErrorUserDidResetEncryptedDataKey = "CKErrorUserDidResetEncryptedData"

extension CKError {
    /// `Code.internalError`.
    public static var internalError: CKError.Code { .internalError }
    /// `Code.partialFailure`.
    public static var partialFailure: CKError.Code { .partialFailure }
    /// `Code.networkUnavailable`.
    public static var networkUnavailable: CKError.Code { .networkUnavailable }
    /// `Code.networkFailure`.
    public static var networkFailure: CKError.Code { .networkFailure }
    /// `Code.badContainer`.
    public static var badContainer: CKError.Code { .badContainer }
    /// `Code.serviceUnavailable`.
    public static var serviceUnavailable: CKError.Code { .serviceUnavailable }
    /// `Code.requestRateLimited`.
    public static var requestRateLimited: CKError.Code { .requestRateLimited }
    /// `Code.missingEntitlement`.
    public static var missingEntitlement: CKError.Code { .missingEntitlement }
    /// `Code.notAuthenticated`.
    public static var notAuthenticated: CKError.Code { .notAuthenticated }
    /// `Code.permissionFailure`.
    public static var permissionFailure: CKError.Code { .permissionFailure }
    /// `Code.unknownItem`.
    public static var unknownItem: CKError.Code { .unknownItem }
    /// `Code.invalidArguments`.
    public static var invalidArguments: CKError.Code { .invalidArguments }
    /// `Code.resultsTruncated`.
    @available(*, deprecated, message: "Will not be returned")
    public static var resultsTruncated: CKError.Code { .resultsTruncated }
    /// `Code.serverRecordChanged`.
    public static var serverRecordChanged: CKError.Code { .serverRecordChanged }
    /// `Code.serverRejectedRequest`.
    public static var serverRejectedRequest: CKError.Code { .serverRejectedRequest }
    /// `Code.assetFileNotFound`.
    public static var assetFileNotFound: CKError.Code { .assetFileNotFound }
    /// `Code.assetFileModified`.
    public static var assetFileModified: CKError.Code { .assetFileModified }
    /// `Code.incompatibleVersion`.
    public static var incompatibleVersion: CKError.Code { .incompatibleVersion }
    /// `Code.constraintViolation`.
    public static var constraintViolation: CKError.Code { .constraintViolation }
    /// `Code.operationCancelled`.
    public static var operationCancelled: CKError.Code { .operationCancelled }
    /// `Code.changeTokenExpired`.
    public static var changeTokenExpired: CKError.Code { .changeTokenExpired }
    /// `Code.batchRequestFailed`.
    public static var batchRequestFailed: CKError.Code { .batchRequestFailed }
    /// `Code.zoneBusy`.
    public static var zoneBusy: CKError.Code { .zoneBusy }
    /// `Code.badDatabase`.
    public static var badDatabase: CKError.Code { .badDatabase }
    /// `Code.quotaExceeded`.
    public static var quotaExceeded: CKError.Code { .quotaExceeded }
    /// `Code.zoneNotFound`.
    public static var zoneNotFound: CKError.Code { .zoneNotFound }
    /// `Code.limitExceeded`.
    public static var limitExceeded: CKError.Code { .limitExceeded }
    /// `Code.userDeletedZone`.
    public static var userDeletedZone: CKError.Code { .userDeletedZone }
    /// `Code.tooManyParticipants`.
    public static var tooManyParticipants: CKError.Code { .tooManyParticipants }
    /// `Code.alreadyShared`.
    public static var alreadyShared: CKError.Code { .alreadyShared }
    /// `Code.referenceViolation`.
    public static var referenceViolation: CKError.Code { .referenceViolation }
    /// `Code.managedAccountRestricted`.
    public static var managedAccountRestricted: CKError.Code { .managedAccountRestricted }
    /// `Code.participantMayNeedVerification`.
    public static var participantMayNeedVerification: CKError.Code { .participantMayNeedVerification }
    /// `Code.serverResponseLost`.
    public static var serverResponseLost: CKError.Code { .serverResponseLost }
    /// `Code.assetNotAvailable`.
    public static var assetNotAvailable: CKError.Code { .assetNotAvailable }
    /// `Code.accountTemporarilyUnavailable`.
    public static var accountTemporarilyUnavailable: CKError.Code { .accountTemporarilyUnavailable }
    /// `Code.participantAlreadyInvited`.
    public static var participantAlreadyInvited: CKError.Code { .participantAlreadyInvited }
}

extension CKError.Code {
    /// The code in words, as error texts have it, such as `Permission Failure` for `permissionFailure`.
    var title: String {
        let name = "\(self)"
        let words = name.prefix(1).uppercased() + name.dropFirst()
        return words.map { $0.isUppercase ? " \($0)" : "\($0)" }.joined().trimmingCharacters(in: .whitespaces)
    }
}
