import RecordModel
import Testing

@testable import CloudKit
@testable import ServiceClient

@Suite("The server's errors as CloudKit's")
struct ErrorMappingTests {
    private let mapping = ErrorMapping(container: "iCloud.c")

    private func failure(_ status: Int, _ body: String) -> ServiceFailure {
        ServiceFailure(ServiceResponse(status: status, body: Array(body.utf8)))
    }

    @Test("Every code of the server has one", arguments: ErrorCode.allCases)
    func allCodes(code: ErrorCode) {
        #expect(ErrorMapping.code(code.rawValue, nil) != nil)
    }

    @Test(
        "Codes; those of servers from before `detail` are told apart by the reason where one is several",
        arguments: [
            ("ACCESS_DENIED", "Operation not permitted", CKError.Code.permissionFailure),
            ("CONFLICT", "client oplock error updating record", .serverRecordChanged),
            ("EXISTS", "record to insert already exists", .serverRecordChanged),
            ("NOT_FOUND", "Record not found", .unknownItem),
            ("NOT_FOUND", "no container 'x': create it", .badContainer),
            ("BAD_REQUEST", "record type not found: X", .unknownItem),
            ("BAD_REQUEST", "Unknown sync continuation type: x", .changeTokenExpired),
            ("BAD_REQUEST", "client knowledge differs from server knowledge: x", .changeTokenExpired),
            (
                "BAD_REQUEST", "operations: 201 given, at most 200 in one request; send them in several requests",
                .limitExceeded
            ),
            ("BAD_REQUEST", "record is 2 bytes, at most 1", .limitExceeded),
            ("BAD_REQUEST", "Field 'x' is not marked queryable", .invalidArguments),
            ("ZONE_NOT_FOUND", "Zone not found", .zoneNotFound),
            ("QUOTA_EXCEEDED", "", .quotaExceeded), ("THROTTLED", "", .requestRateLimited),
            ("VALIDATING_REFERENCE_ERROR", "", .referenceViolation), ("ATOMIC_ERROR", "", .batchRequestFailed),
            ("AUTHENTICATION_REQUIRED", "", .notAuthenticated),
        ])
    func codes(serverCode: String, reason: String, code: CKError.Code) {
        #expect(ErrorMapping.code(serverCode, ErrorDetail(ofError: .members(["reason": .string(reason)]))) == code)
    }

    @Test(
        "Where the server says what an error is about, its words count for nothing",
        arguments: [
            ("NOT_FOUND", "unknownContainer", CKError.Code.badContainer),
            ("BAD_REQUEST", "unknownRecordType", .unknownItem),
            ("BAD_REQUEST", "expiredSyncToken", .changeTokenExpired),
            ("BAD_REQUEST", "tooLarge", .limitExceeded), ("BAD_REQUEST", "tooLongAnswer", .limitExceeded),
            ("BAD_REQUEST", "tooDeep", .invalidArguments), ("BAD_REQUEST", "ofLaterVersions", .invalidArguments),
        ])
    func details(serverCode: String, detail: String, code: CKError.Code) throws {
        // The words are of something else.
        let reason = detail == "unknownRecordType" ? "Unknown sync continuation type" : "record type not found: X"
        let body = #"{"serverErrorCode": "\#(serverCode)", "reason": "\#(reason)", "detail": "\#(detail)"}"#
        let error = mapping.error(failure(400, body))
        #expect(error.code == code && error.isOfTooLongAnswer == (detail == "tooLongAnswer"))
        let item = try JSONParser.parse(Array(body.utf8))
        #expect(mapping.item(item)?.code == code)
    }

    @Test("A whole request's error carries what the server said, when to come back, and under which name it is logged")
    func wholeRequest() {
        let error = mapping.error(
            failure(
                429,
                #"{"serverErrorCode":"THROTTLED","reason":"slow down","retryAfter":1,"#
                    + #""retryAfterMilliseconds":250,"uuid":"u-1"}"#))
        #expect(error.code == .requestRateLimited && error.retryAfterSeconds == 0.25)
        #expect(error.localizedDescription == "slow down")
        for part in [
            "\"Request Rate Limited\" (7/THROTTLED)", "server message = \"slow down\"", "uuid = u-1", "iCloud.c",
        ] {
            #expect(error.debugDescription.contains(part), "\(error.debugDescription)")
        }
        #expect(mapping.error(failure(502, "<html>")).code == .serviceUnavailable)
        #expect(
            mapping.error(failure(501, #"{"serverErrorCode":"BAD_REQUEST","reason":"not built"}"#)).code
                == .serverRejectedRequest)
    }

    @Test(
        "What keeps from asking the cluster is told apart from what got lost on the way, and from a wrong configuration"
    )
    func reaching() {
        var unreachable = ServiceUnreachable(
            problems: [("https://a", "gone")], isRefused: true, isOutcomeUnknown: false)
        #expect(mapping.error(unreachable).code == .networkUnavailable)
        unreachable.wasSent = true
        #expect(mapping.error(unreachable).code == .networkFailure)
        #expect(mapping.error(ServiceClientError("no URL")).code == .badContainer)
        #expect(mapping.error(ServiceClientError("no file", about: .session)).code == .notAuthenticated)
        #expect(mapping.error(CancellationError()).code == .operationCancelled)
    }

    @Test("An item's error is its own; one that can be tried again is a busy zone")
    func items() throws {
        let busy = try JSONParser.parse(
            Array(#"{"serverErrorCode":"TRY_AGAIN_LATER","reason":"r","retryAfter":2}"#.utf8))
        #expect(mapping.item(busy)?.code == .zoneBusy && mapping.item(busy)?.retryAfterSeconds == 2)
        #expect(mapping.item(.object([])) == nil)
        #expect(mapping.item(.members(["serverErrorCode": .string("NEW_CODE")]))?.code == .internalError)
    }
}
