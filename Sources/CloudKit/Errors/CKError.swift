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
