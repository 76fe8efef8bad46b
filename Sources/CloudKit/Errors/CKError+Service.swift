import Foundation

/// What the service knows of an error, beside its code.
struct CKErrorDetails {
    /// What the server said, in its words.
    var serverMessage: String?
    /// The server's own code, such as `ACCESS_DENIED`.
    var serverCode: String?
    /// The server's name for the request, for whoever looks it up in its log.
    var requestUUID: String?
    /// The container that was asked.
    var containerID: String?
    /// After how many seconds to try again.
    var retryAfterSeconds: Double?
    /// The error of each item, by record ID, zone ID or subscription ID.
    var partialErrors: [AnyHashable: any Error]?
    var serverRecord: CKRecord?
    var clientRecord: CKRecord?
    var ancestorRecord: CKRecord?
    /// What lies beneath: the network's error and the like.
    var underlying: (any Error)?

    init(
        serverMessage: String? = nil, serverCode: String? = nil, requestUUID: String? = nil, containerID: String? = nil,
        retryAfterSeconds: Double? = nil
    ) {
        self.serverMessage = serverMessage
        self.serverCode = serverCode
        self.requestUUID = requestUUID
        self.containerID = containerID
        self.retryAfterSeconds = retryAfterSeconds
    }
}

extension CKError {
    /// An error that the service or the SDK found.
    ///
    /// `reason` says what was wrong, where, and what to do; it is what `localizedDescription` gives.
    init(_ code: Code, reason: String, details: CKErrorDetails = CKErrorDetails()) {
        var info: [String: Any] = [NSLocalizedDescriptionKey: reason, Key.reason: reason]
        info[Key.serverMessage] = details.serverMessage
        info[Key.serverCode] = details.serverCode
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
        static let requestUUID = "RequestUUID"
        static let containerID = "ContainerID"
    }
}
