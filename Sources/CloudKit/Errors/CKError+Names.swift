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
    /// The code in words, as error texts have it, such as `Permission Failure`.
    var title: String {
        let words =
            switch self {
            case .internalError: "Internal Error"
            case .partialFailure: "Partial Failure"
            case .networkUnavailable: "Network Unavailable"
            case .networkFailure: "Network Failure"
            case .badContainer: "Bad Container"
            case .serviceUnavailable: "Service Unavailable"
            case .requestRateLimited: "Request Rate Limited"
            case .missingEntitlement: "Missing Entitlement"
            case .notAuthenticated: "Not Authenticated"
            case .permissionFailure: "Permission Failure"
            case .unknownItem: "Unknown Item"
            case .invalidArguments: "Invalid Arguments"
            case .serverRecordChanged: "Server Record Changed"
            case .serverRejectedRequest: "Server Rejected Request"
            case .assetFileNotFound: "Asset File Not Found"
            case .assetFileModified: "Asset File Modified"
            case .incompatibleVersion: "Incompatible Version"
            case .constraintViolation: "Constraint Violation"
            case .operationCancelled: "Operation Cancelled"
            case .changeTokenExpired: "Change Token Expired"
            case .batchRequestFailed: "Batch Request Failed"
            case .zoneBusy: "Zone Busy"
            case .badDatabase: "Bad Database"
            case .quotaExceeded: "Quota Exceeded"
            case .zoneNotFound: "Zone Not Found"
            case .limitExceeded: "Limit Exceeded"
            case .userDeletedZone: "User Deleted Zone"
            case .tooManyParticipants: "Too Many Participants"
            case .alreadyShared: "Already Shared"
            case .referenceViolation: "Reference Violation"
            case .managedAccountRestricted: "Managed Account Restricted"
            case .participantMayNeedVerification: "Participant May Need Verification"
            case .serverResponseLost: "Server Response Lost"
            case .assetNotAvailable: "Asset Not Available"
            case .accountTemporarilyUnavailable: "Account Temporarily Unavailable"
            case .participantAlreadyInvited: "Participant Already Invited"
            default: "Results Truncated"
            }
        return words
    }
}
