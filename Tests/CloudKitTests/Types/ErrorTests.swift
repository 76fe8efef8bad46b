import Foundation
import Testing

@testable import CloudKit

@Suite("Errors, by sdk-surface section 10")
struct ErrorTests {
    @Test("the codes have Apple's numbers")
    func numbers() {
        let codes: [CKError.Code] = [
            .internalError, .partialFailure, .networkUnavailable, .networkFailure, .badContainer, .serviceUnavailable,
            .requestRateLimited, .missingEntitlement, .notAuthenticated, .permissionFailure, .unknownItem,
            .invalidArguments,
        ]
        #expect(codes.map(\.rawValue) == Array(1...12))
        let later: [CKError.Code] = [
            .serverRecordChanged, .serverRejectedRequest, .assetFileNotFound, .assetFileModified, .incompatibleVersion,
            .constraintViolation, .operationCancelled, .changeTokenExpired, .batchRequestFailed, .zoneBusy,
            .badDatabase, .quotaExceeded, .zoneNotFound, .limitExceeded, .userDeletedZone, .tooManyParticipants,
            .alreadyShared, .referenceViolation, .managedAccountRestricted, .participantMayNeedVerification,
            .serverResponseLost, .assetNotAvailable, .accountTemporarilyUnavailable, .participantAlreadyInvited,
        ]
        #expect(later.map(\.rawValue) == Array(14...37))
        #expect(CKError.serverRecordChanged == .serverRecordChanged && CKError.zoneBusy.rawValue == 23)
    }

    @Test("an error is caught as CKError, by its code, and by a pattern")
    func catching() {
        let error: any Error = CKError(.zoneNotFound, reason: "no zone")
        var caught: [String] = []
        do { throw error } catch let error as CKError where error.code == .zoneNotFound {
            caught.append("\(error.errorCode)")
        } catch {}
        do { throw error } catch CKError.zoneNotFound { caught.append("pattern") } catch {}
        do { throw error } catch CKError.zoneBusy { caught.append("wrong") } catch { caught.append("other") }
        if let code = (error as? CKError)?.code, case .zoneNotFound = code { caught.append("cast") }
        #expect(caught == ["26", "pattern", "other", "cast"])
    }

    @Test("as an NSError it keeps domain, code and userInfo, and comes back from it")
    func bridging() {
        let error: any Error = CKError(
            .requestRateLimited, reason: "too many requests", details: CKErrorDetails(retryAfterSeconds: 2.5))
        let bridged = error as NSError
        #expect(bridged.domain == CKErrorDomain && bridged.domain == "CKErrorDomain")
        #expect(bridged.code == CKError.Code.requestRateLimited.rawValue)
        #expect(bridged.localizedDescription == "too many requests")
        #expect(bridged.userInfo[CKErrorRetryAfterKey] as? Double == 2.5)
        #expect((error as NSError?)?.code == 7)
        let back = CKError(_nsError: bridged)
        #expect(back.code == .requestRateLimited && back.retryAfterSeconds == 2.5)
        #expect(error.localizedDescription == "too many requests")
    }

    @Test("an app makes errors for its tests, with a code and userInfo")
    func made() {
        let error = CKError(.networkFailure)
        #expect(error.code == .networkFailure && error.retryAfterSeconds == nil && error.serverRecord == nil)
        let busy = CKError(.zoneBusy, userInfo: [CKErrorRetryAfterKey: 3.0])
        #expect(busy.retryAfterSeconds == 3)
        #expect(CKError.errorDomain == "CKErrorDomain" && error.userInfo.isEmpty)
        #expect(CKError(.zoneBusy) == CKError(.zoneBusy) && CKError(.zoneBusy) != CKError(.networkFailure))
        #expect(CKError(_nsError: NSError(domain: CKErrorDomain, code: 999)).code == .internalError)
    }

    @Test("a conflict carries the server's, the client's and the ancestor record")
    func conflict() {
        var details = CKErrorDetails(serverCode: "CONFLICT")
        details.serverRecord = CKRecord(recordType: "Thing", recordID: CKRecord.ID(recordName: "server"))
        details.clientRecord = CKRecord(recordType: "Thing", recordID: CKRecord.ID(recordName: "client"))
        details.ancestorRecord = CKRecord(recordType: "Thing", recordID: CKRecord.ID(recordName: "ancestor"))
        let error = CKError(.serverRecordChanged, reason: "changed", details: details)
        #expect(error.serverRecord === details.serverRecord)
        #expect(error.clientRecord === details.clientRecord)
        #expect(error.ancestorRecord === details.ancestorRecord)
        let info = (error as NSError).userInfo
        #expect(info[CKRecordChangedErrorServerRecordKey] as? CKRecord === details.serverRecord)
        #expect(info[CKRecordChangedErrorClientRecordKey] as? CKRecord === details.clientRecord)
        #expect(info[CKRecordChangedErrorAncestorRecordKey] as? CKRecord === details.ancestorRecord)
    }

    @Test("a partial failure names the error of each item, which stays a CKError")
    func partial() throws {
        let (one, two) = (CKRecord.ID(recordName: "one"), CKRecord.ID(recordName: "two"))
        var details = CKErrorDetails()
        details.partialErrors = [
            one: CKError(.unknownItem, reason: "not there"), two: CKError(.batchRequestFailed, reason: "batch failed"),
        ]
        let error = CKError(.partialFailure, reason: "2 of 2 items failed", details: details)
        let partial = try #require(error.partialErrorsByItemID)
        #expect((partial[CKRecord.ID(recordName: "one")] as? CKError)?.code == .unknownItem)
        #expect((partial[two] as? CKError)?.code == .batchRequestFailed)
        let bridged = (error as NSError).userInfo[CKPartialErrorsByItemIDKey] as? [AnyHashable: any Error]
        #expect(bridged?.count == 2)
        #expect((error as NSError).userInfo[CKPartialErrorsByItemIDKey] as? NSDictionary != nil)
    }

    @Test("the debug text has the shape of Apple's")
    func debugText() throws {
        let error = CKError(
            .permissionFailure, reason: "the role may not write",
            details: CKErrorDetails(
                serverMessage: "Operation not permitted", serverCode: "ACCESS_DENIED",
                requestUUID: "0DF4-1", containerID: "iCloud.com.example.app", retryAfterSeconds: 1.5))
        let text = error.debugDescription
        #expect(text.hasPrefix("<CKError 0x"))
        let rest = try #require(text.firstIndex(of: ":").map { text[$0...] })
        #expect(
            rest == """
                : "Permission Failure" (10/ACCESS_DENIED); server message = "Operation not permitted"; \
                retry after 1.5 seconds; uuid = 0DF4-1; container ID = "iCloud.com.example.app">
                """)
        #expect("\(error)" == text)
        #expect(
            CKError(.accountTemporarilyUnavailable).debugDescription.hasSuffix(
                "\"Account Temporarily Unavailable\" (36)>"))
        #expect(CKError(.badContainer, reason: "why").debugDescription.hasSuffix("\"Bad Container\" (5); \"why\">"))
    }
}
