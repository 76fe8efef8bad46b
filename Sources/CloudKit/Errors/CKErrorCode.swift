public import Foundation

extension CKError {
    /// What went wrong, with Apple's numbers.
    public enum Code: Int, Hashable, Sendable, _ErrorCodeProtocol {
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
        /// The change token is too old: fetch everything anew, without a token.
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
