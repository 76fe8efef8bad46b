package import Admission
import Authorization
import Directory
package import RecordModel
import Synchronization

/// Where the parts of a request's work note what the log is to say of it. Any thread.
package final class RequestNote: Sendable {
    private let details = Mutex(RequestDetails())
    private let failure = Mutex<RequestFailure?>(nil)

    package init() {}

    /// Takes note of something.
    package func note(_ change: (inout RequestDetails) -> Void) { details.withLock { change(&$0) } }

    /// Takes note of what is asked for, as the log names it; what is never noted is not logged.
    package func asks(_ operation: String, _ group: OperationGroup) {
        note { details in
            details.operation = operation
            details.group = group
        }
    }

    /// Takes note of the zone, and of a record type and how many records where the request says so.
    package func about(zone: String, recordType: String? = nil, records: Int = 0) {
        note { details in
            details.zone = zone
            if let recordType { details.recordType = recordType }
            details.records = records
        }
    }

    /// Takes note of an item that failed by itself.
    package func itemFailed(_ error: ServiceError) {
        note { details in
            if details.failedItems == 0 { details.itemFailure = error }
            details.failedItems += 1
        }
    }

    /// Takes note of why the request failed as a whole.
    package func failed(_ error: RequestFailure) { failure.withLock { $0 = error } }

    /// What was noted, as an entry of the log; nil for a request that is not logged.
    package func entry(_ id: UUIDv7) -> RequestEntry? {
        let details = details.withLock(\.self)
        guard !details.operation.isEmpty else { return nil }
        var entry = RequestEntry(id: id, operation: details.operation, group: details.group)
        entry.container = details.container
        entry.environment = details.environment
        entry.database = details.database
        entry.zone = details.zone
        entry.recordType = details.recordType
        entry.user = details.user
        entry.credential = details.credential
        entry.records = details.records
        entry.bytesIn = details.bytesIn
        entry.failedItems = details.failedItems
        entry.itemCode = details.itemFailure?.code
        if let failure = failure.withLock(\.self) {
            entry.code = failure.error.code
            entry.refusal = RequestRefusal(failure)
        } else if let error = details.itemFailure {
            entry.refusal = RequestRefusal(RequestFailure(error))
        }
        return entry
    }
}

extension RequestNote {
    /// Takes note of who asks.
    package func admitted(_ admitted: Admitted) {
        note { details in
            details.user = admitted.caller.isAdministrator ? "" : admitted.caller.user ?? ""
            // Ids and names that exist already: a request makes no text for the log.
            details.credential = admitted.administrator ?? admitted.keyID ?? admitted.apiToken?.id ?? ""
        }
    }
}
